"""Many Gaussians at once: the public function, its arguments checked, its results a Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.solvers.covariances.heads import parameters
from vlasov.solvers.covariances.layout import ORDERS
from vlasov.solvers.ode.integrate import TIGHTEST

LARGEST_DIMENSION = 8
STATUS = ("", "completed", "blow-up", "diverging", "stopped")  # by the kernels' numbers
_OUTPUTS = 101
_ROUNDING = 1e-12
_HUGE = 1e130  # of products whose squares are taken, and which may grow
_OTHER = {8: 10.0, 5: 0.1}  # times the tolerance, of the second look by the other order
_DOUBLED = 2.0  # what two looks differ by is told as the error so many times: both err
_FEW = 64  # covariances that one thread integrates before others are there


def covariances(
    attention: Attention | Sequence[Attention],
    initial: ArrayLike,
    horizon: float | ArrayLike,
    *,
    means: ArrayLike | None = None,
    times: ArrayLike | None = None,
    tolerance: float = 1e-10,
    order: int = 8,
    most_growth: float = 1e12,
    max_steps: int = 1_000_000,
    check: bool = True,
) -> xr.Dataset:
    """Sigma' = B Sigma + Sigma B^T, alpha' = b + B alpha from many N(alpha, Sigma) at once; Gamma(x) = b + B x.

    Each is integrated as by ``vl.solve(..., "gaussian")``: a factor F with Sigma = F F^T, by adaptive steps of its own,
    to its horizon or its blow-up. Results do not depend on the order of the batch, nor on the number of threads.

    Parameters
    ----------
    attention
        Softmax, L2, Sinkhorn, or several of them in a multi-head attention, with constant parameters; one for all, or
        a list with one for each.
    initial
        Covariances (b, d, d), d <= 8; they may be singular.
    horizon
        When to stop; a number, or one for each.
    means
        (b, d); zero if not given.
    times
        Output times: (m,), or (b, m) where each has its own; 101 equidistant ones if not given. None are with [].
    tolerance
        Local error per step, relative to |F| and to the mean.
    order
        Of the Runge-Kutta method: 5 or 8.
    most_growth
        A covariance that has grown so many times, with no blow-up ahead, ends as "diverging".
    max_steps
        One that tries more steps, or whose steps are lost beside t, ends as "stopped". Steps are explicit: where a
        covariance grows so that attention damps others ever faster, |B| times the time left is how many are needed;
        ``vl.solve(..., "gaussian")`` goes on by an implicit method there.
    check
        Whether to integrate once more, by the method of the other order, to know the errors. Some solutions turn so
        often before they end that they are chaotic: then no tolerance tells the time.

    Returns
    -------
    ``status`` and ``end_time`` of each trajectory, ``blow_up_time`` (NaN where there is none), ``steps``;
    ``covariance`` and ``mean`` at the output times, NaN beyond the end; ``last_covariance`` and ``last_mean``. With
    ``check`` also ``end_time_error``, infinite where the other look ends otherwise, and at output times
    ``covariance_error`` and ``mean_error``, relative to the largest entry.

    Examples
    --------
    In d = 1 with A = V = 1 variances s blow up at 1 / (2 s):

    >>> starts = [[[0.25]], [[0.5]], [[1.0]]]
    >>> found = vl.covariances(vl.Softmax(A=[[1.0]]), starts, horizon=1.5)
    >>> found["status"].values.tolist(), found["blow_up_time"].values.round(6)
    (['completed', 'blow-up', 'blow-up'], array([nan, 1. , 0.5]))
    """
    matrices, centres = _initial(initial, means)
    b, d = matrices.shape[:2]
    kinds, numbers = _parameters(attention, matrices)
    ends = _ends(horizon, b)
    outputs = _outputs(times, ends, b)
    _check_steps(tolerance, most_growth, max_steps, order)
    with_means = bool(centres.any())
    initial_states = np.concatenate([_factors(matrices).reshape(b, -1), centres[:, : d * with_means]], axis=1)
    problem = (initial_states, numbers, outputs, ends[:, None])
    shape, most = (d, with_means, order), (most_growth, float(max_steps))
    found = _dataset(outputs, centres, _run(problem, kinds, shape, (tolerance, *most)), tolerance, order)
    if checks.flag(check, "check"):
        # Another method: with the same one steps may be the same, by output times or growth, and so may errors.
        others = (d, with_means, sum(ORDERS) - order)
        other = _run(problem, kinds, others, (max(_OTHER[order] * tolerance, 2 * TIGHTEST), *most))
        found = found.assign(_errors(found, _dataset(outputs, centres, other, tolerance, order)))
    return found


def _initial(initial: ArrayLike, means: ArrayLike | None) -> tuple[Array, Array]:
    """Symmetric positive semi-definite matrices (b, d, d), and means (b, d)."""
    matrices = checks.array(initial, "initial", shape=(None, None, None))
    b, d = matrices.shape[:2]
    if matrices.shape[2] != d or not b or not 1 <= d <= LARGEST_DIMENSION:
        raise InputError(
            f"has shape {matrices.shape} where (b, d, d) with d <= {LARGEST_DIMENSION} is needed", "initial"
        )
    scale = np.abs(matrices).max(axis=(1, 2), initial=0.0)
    if not scale.max() < _HUGE:
        raise InputError(
            f"holds entries above {_HUGE:g}, whose squares are no numbers; choose other units of x", "initial"
        )
    skew = np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2))
    least = np.linalg.eigvalsh(matrices)[:, 0]
    for wrong, what in ((skew, "is not symmetric"), (-least, "has a negative eigenvalue")):
        if (wrong > _ROUNDING * scale).any():
            i = int(np.argmax(wrong > _ROUNDING * scale))
            raise InputError(
                f"{what}, by {wrong[i]:.2g}; a covariance is symmetric positive semi-definite", f"initial[{i}]"
            )
    centres = np.zeros((b, d)) if means is None else checks.array(means, "means", shape=(b, d))
    return (matrices + matrices.transpose(0, 2, 1)) / 2, centres


def _parameters(attention: Attention | Sequence[Attention], matrices: Array) -> tuple[Array, Array]:
    """Kinds of heads and their numbers, of one attention or one for each covariance."""
    b, d = matrices.shape[:2]
    attentions = [attention] if isinstance(attention, Attention) else list(checks.items(attention, "attention"))
    if len(attentions) not in (1, b):
        raise InputError(
            f"holds {len(attentions)} attentions for {b} covariances; give one, or one for each", "attention"
        )
    kinds, numbers = parameters(attentions)
    if attentions[0].dimension != d:
        raise InputError(f"are {d} x {d} but the attention has d = {attentions[0].dimension}", "initial")
    _check_sizes(matrices, numbers)
    return kinds, numbers


def _check_steps(tolerance: float, most_growth: float, max_steps: int, order: int) -> None:
    """Complain about what says how to step."""
    checks.number(tolerance, "tolerance", above=TIGHTEST, below=1e-2)
    checks.number(most_growth, "most_growth", above=1.0)
    checks.integer(max_steps, "max_steps", least=1)
    if order not in ORDERS:
        raise InputError(f"is {order} but must be 5 or 8", "order")


def _check_sizes(matrices: Array, numbers: Array) -> None:
    """Complain about products Sigma A whose squares, after some growth, would be no numbers."""
    with np.errstate(over="ignore"):
        size = np.abs(numbers).max() * max(np.abs(matrices).max(), 1.0)
    if not size < _HUGE:
        raise InputError(f"and the attention are so large that products exceed {_HUGE:g}; scale them down", "initial")


def _factors(matrices: Array) -> Array:
    """F with F F^T = Sigma, square: scaled eigenvectors; what is zero up to rounding is zero."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.where(values > 1e-14 * values[:, -1:], values, 0.0)
    return vectors * np.sqrt(values)[:, None, :]


def _ends(horizon: float | ArrayLike, b: int) -> Array:
    ends = np.atleast_1d(checks.array(horizon, "horizon"))
    if ends.shape not in ((1,), (b,)) or not (ends > 0).all():
        raise InputError("must be positive: one number, or one for each covariance", "horizon")
    return ends


def _outputs(times: ArrayLike | None, ends: Array, b: int) -> Array:
    """(m,) for all, as (1, m), or (b, m)."""
    if times is None:
        return ends[:, None] * np.linspace(0.0, 1.0, _OUTPUTS)
    outputs = np.atleast_2d(checks.array(times, "times"))
    if outputs.ndim != 2 or len(outputs) not in (1, b):
        raise InputError(f"has shape {outputs.shape} where (m,) or ({b}, m) is needed", "times")
    if (np.diff(outputs, axis=1) <= 0).any() or (outputs < 0).any() or (outputs > ends[:, None]).any():
        raise InputError("must increase from zero or later to the horizon at most", "times")
    return outputs


def _run(
    problem: tuple[Array, Array, Array, Array],
    kinds: Array,
    shape: tuple[int, bool, int],
    settings: tuple[float, float, float],
) -> tuple[Array, Array, Array, Array, Array]:
    """Covariances and means at output times, the last ones, and the kernels' summary."""
    from numba import get_num_threads

    from vlasov.compiled.lanes import WIDTH
    from vlasov.compiled.threads import in_threads
    from vlasov.solvers.covariances import kernels
    from vlasov.solvers.covariances.layout import layout

    (d, means, _), at = shape, layout(*shape)
    b, m, k = len(problem[0]), problem[2].shape[1], d * means
    results = tuple(np.full((b, *rest), np.nan) for rest in ((m, d, d), (m, k), (d, d), (k,), (5,)))
    threads = max(1, min(get_num_threads(), b // _FEW))
    memory = np.zeros((threads, at.heads + len(kinds) * at.head, WIDTH))
    places = np.array([*settings, d * d, at.heads])
    codes = np.array(kernels.addresses(*shape))
    in_threads(threads, kernels.run, problem, kinds, memory, places, codes, results)
    return results  # type: ignore[return-value]


def _dataset(outputs: Array, centres: Array, results: tuple[Array, ...], tolerance: float, order: int) -> xr.Dataset:
    covariance, mean, last, last_mean, summary = results
    fate = summary[:, 0].astype(int)
    b, d = centres.shape
    if not mean.shape[-1]:
        mean, last_mean = np.where(np.isnan(covariance[..., 0]), np.nan, 0.0), np.zeros((b, d))
    blown = fate == STATUS.index("blow-up")
    end = np.where(blown, summary[:, 2], summary[:, 1])
    times = ("time", outputs[0]) if len(outputs) == 1 else (("trajectory", "time"), outputs)
    found = xr.Dataset(
        {
            "status": ("trajectory", np.array(STATUS)[fate], {"long_name": "how the trajectory ended"}),
            "end_time": ("trajectory", end, {"long_name": "when it ended"}),
            "blow_up_time": ("trajectory", np.where(blown, end, np.nan), {"long_name": "time of the blow-up"}),
            "steps": ("trajectory", summary[:, 3].astype(int), {"long_name": "number of steps in time"}),
            "covariance": (("trajectory", "time", "row", "column"), covariance, {"long_name": "covariance"}),
            "mean": (("trajectory", "time", "row"), mean, {"long_name": "mean"}),
            "last_covariance": (("trajectory", "row", "column"), last, {"long_name": "covariance at the end"}),
            "last_mean": (("trajectory", "row"), last_mean, {"long_name": "mean at the end"}),
        },
        coords={"time" if len(outputs) == 1 else "own_time": times},
        attrs={"tolerance": tolerance, "order": order, "title": "covariances in bulk"},
    )
    found.attrs["counts"] = ", ".join(
        f"{(fate == k).sum()} {name}" for k, name in enumerate(STATUS) if (fate == k).any()
    )
    return found


def _errors(found: xr.Dataset, other: xr.Dataset) -> dict[str, Any]:
    """Twice how far another look is from this one; infinite where that ends otherwise."""
    same = (found["status"] == other["status"]).values
    late = np.where(same, _DOUBLED * np.abs(found["end_time"].values - other["end_time"].values), np.inf)
    result: dict[str, Any] = {
        "end_time_error": (("trajectory",), late, {"long_name": "estimated error of when it ended"})
    }
    for name, what in (("covariance", ("row", "column")), ("mean", ("row",))):
        values, others, axes = found[name].values, other[name].values, tuple(range(2, 2 + len(what)))
        with np.errstate(all="ignore"):
            sizes = np.abs(values).max(axis=axes)
            off = _DOUBLED * np.abs(values - others).max(axis=axes) / np.where(sizes > 0, sizes, 1.0)
        off = np.where(np.isnan(off) & ~np.isnan(sizes), np.inf, off)
        label = {"long_name": f"estimated error of the {name}, relative to its largest entry"}
        result[f"{name}_error"] = (("trajectory", "time"), off, label)
    return result
