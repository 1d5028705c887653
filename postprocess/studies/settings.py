"""Settings that several studies have, checked."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from vlasov import checks
from vlasov.errors import InputError, choose, did_you_mean
from vlasov.measures import SAMPLINGS
from vlasov.problem import Problem

DETERMINISTIC = ("quantile", "quadrature")  # samplings that know no replicas
MOST = 10**7  # tokens


def check_known(given: Iterable[str], known: Iterable[str], study: str) -> None:
    """Complain about settings that a study does not have."""
    names = list(known)
    for name in given:
        if name not in names:
            raise InputError(f"is not an option of a {study}; {did_you_mean(name, names)}", name)


def several(value: object, field: str) -> tuple[object, ...]:
    """One or more of something."""
    items = (value,) if isinstance(value, str | int | float | np.generic) else checks.items(value, field)
    if not items:
        raise InputError("is empty; give at least one", field)
    return items


def sampling(name: object, problem: Problem) -> str:
    """How tokens are drawn from an initial measure."""
    chosen = choose(name, SAMPLINGS, "sampling")
    if chosen == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "sobol"', "sampling")
    if chosen == "quantile" and problem.attention.causal:
        raise InputError('"quantile" leaves no place for s in a sequence; use "sobol"', "sampling")
    return chosen


def exact_up_to(value: object, sizes: Iterable[int], pairs: float, dimension: int) -> int:
    """The largest number of tokens with exact transport, of which there is memory for ``pairs``."""
    largest, most = checks.integer(value, "exact_up_to", least=0), math.isqrt(int(pairs))
    wanted = max((size for size in sizes if size <= largest), default=0)
    if dimension > 1 and wanted > most:
        raise InputError(
            f"is {largest} but exact transport of {wanted} tokens needs too much memory; it is possible up to "
            f"n = {most}",
            "exact_up_to",
        )
    return largest
