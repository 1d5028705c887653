"""Options that several studies have, and their checks: from a value and the option's name to the value of the study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.errors import InputError, choose
from vlasov.measures import SAMPLINGS
from vlasov.postprocess.studies.study import option
from vlasov.postprocess.wasserstein import checked_order
from vlasov.problem import Problem
from vlasov.solvers.driver import prepare
from vlasov.solvers.ode.integrate import TIGHTEST

Check = Callable[[Any, str], Any]
DETERMINISTIC = ("quantile", "quadrature")  # samplings that know no replicas
MOST = 10**7  # tokens
_MOST_REPLICAS = 100_000


def whole(*, least: int = 0, most: int = checks.SEEDS) -> Check:
    """Return the check of a whole number."""
    return lambda value, name: checks.integer(value, name, least=least, most=most)


def real(*, above: float = -math.inf, below: float = math.inf) -> Check:
    """Return the check of a number."""
    return lambda value, name: checks.number(value, name, above=above, below=below)


def unless_none(check: Check) -> Check:
    """Return the check of a value that may be None."""
    return lambda value, name: None if value is None else check(value, name)


def several(check: Check, *, ordered: bool = False) -> Check:
    """Return the check of one value or more, as a tuple without repetitions; ``ordered``: increasing."""

    def checked(value: Any, name: str) -> tuple[Any, ...]:
        items = (value,) if isinstance(value, str | int | float | np.generic) else checks.items(value, name)
        if not items:
            raise InputError("is empty; give at least one", name)
        unique = dict.fromkeys(check(item, name) for item in items)
        return tuple(sorted(unique) if ordered else unique)

    return checked


def sizes_option(default: tuple[int, ...], *, least: int = 1) -> Any:
    """Return the option of numbers of tokens that are studied."""
    return option(default, "Numbers of tokens.", check=several(whole(least=least, most=MOST), ordered=True), free=True)


def replicas_option(default: int, says: str) -> Any:
    """Return the option of random repetitions."""
    return option(default, says, check=whole(least=1, most=_MOST_REPLICAS), free=True)


def orders_option() -> Any:
    """Return the option of exponents of distances."""
    check = several(lambda value, _: checked_order(value))
    return option((1, 2), "Exponents of the distances, at least 1.", check=check)


def seed_option() -> Any:
    """Return the option of the seed."""
    return option(0, "Makes everything repeatable.", check=whole())


def tolerance_option(default: float, says: str) -> Any:
    """Return the option of the tolerance of a flow."""
    return option(default, says, check=real(above=TIGHTEST, below=1e-2))


def exact_option() -> Any:
    """Return the option of the largest number of tokens with exact transport."""
    return option(
        2048,
        "For d >= 2, the largest n with Wasserstein distances, by exact transport; its cost grows like n^2. NaN "
        "beyond. For d = 1 there is no limit.",
        check=whole(),
    )


def check_sampling(name: object, problem: Problem) -> str:
    """Return how tokens are drawn from the initial measure of a problem."""
    chosen = choose(name, SAMPLINGS, "sampling")
    if chosen == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "sobol"', "sampling")
    if chosen == "quantile" and problem.attention.causal:
        raise InputError('"quantile" leaves no place for s in a sequence; use "sobol"', "sampling")
    return chosen


def check_exact(largest: int, sizes: Iterable[int], pairs: float, dimension: int) -> None:
    """Raise InputError where exact transport of these numbers of tokens has no memory, which is for ``pairs``."""
    most = math.isqrt(int(pairs))
    wanted = max((size for size in sizes if size <= largest), default=0)
    if dimension > 1 and wanted > most:
        raise InputError(
            f"is {largest} but exact transport of {wanted} tokens needs too much memory; it is possible up to "
            f"n = {most}",
            "exact_up_to",
        )


def checked_times(problem: Problem, times: ArrayLike) -> tuple[float, ...]:
    """Return output times in [0, horizon]."""
    return tuple(prepare(problem, "particles", times=times).times.tolist())
