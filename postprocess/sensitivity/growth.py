"""Optimal growth along a path, sup |M h| / |h| at each output time, and the rates that bound it.

    growth <= exp int lambda <= exp int |J|,   lambda = largest eigenvalue of (J + J*) / 2,   J* = diag(1/w) J^T diag(w)

In the limit of many tokens J is D Gamma(x) at each token, a multiplication, and a compact rest: lambda and |J| are then
at least those of D Gamma(x) at each node x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.lanczos import largest_eigenvalue, largest_singular
from vlasov.lipschitz import participation
from vlasov.postprocess.sensitivity import quadrature
from vlasov.postprocess.sensitivity.path import NODES, Node, Path
from vlasov.postprocess.sensitivity.tangency import Tangency
from vlasov.solvers.progress import reached

_OF_RATES, _LOOSEST = 100.0, 1e-4  # tolerance of rates, whose integral is a logarithm: times that of growth; at most


class Growth(NamedTuple):
    """The growth up to an output time with its error, and the changes at both ends, of length one."""

    value: float
    error: float
    products: int
    participation: float
    carriers: float
    right: Array
    left: Array
    converged: bool = True


class Rates(NamedTuple):
    """int lambda and int |J| up to each output time, and the error of both.

    Errors of rates are added to them; ``quadrature`` estimates that of the integrals. ``converged`` says whether
    Lanczos' iteration was right to its tolerance everywhere.
    """

    logarithmic: Array
    norm: Array
    error: Array
    products: int
    converged: bool


class _Rate(NamedTuple):
    """Lambda and |J| at one time, with their errors added, and the larger of these."""

    logarithmic: float
    norm: float
    error: float
    products: int
    converged: bool


def growths(path: Path, tangency: Tangency, tolerances: Array) -> list[Growth]:
    """Return the growth at each output time of the path, to its relative tolerance."""
    n, d = path.cloud.points.shape
    weights, allowed = path.cloud.weights, tangency.projector(path.outputs[0])
    still = np.zeros((n, d))
    found = [Growth(1.0, 0.0, 0, 1.0, float(n), still, still)]
    for number, count in enumerate(path.ends[1:], 1):
        reached(f"growth at time {number} of {len(path.ends) - 1}", sum(path.ends[:number]) / sum(path.ends))
        try:
            one = largest_singular(
                lambda h, count=count: path.forward(allowed(h), count),  # type: ignore[misc]
                lambda p, count=count: allowed(path.backward(p, count)),  # type: ignore[misc]
                (n, d), weights=weights, tolerance=float(tolerances[number]),
            )  # fmt: skip
        except InputError as mistake:
            path.cut(
                len(found), f"derivatives leave the numbers after t = {path.reached[len(found) - 1]:.4g} ({mistake})"
            )
            break
        shares = weights * np.einsum("nd,nd->n", one.right, one.right)
        part, carriers = participation(shares, weights)
        found.append(Growth(one.value, one.error, one.products, part, carriers, one.right, one.left, one.converged))
    return found


def rates(path: Path, tangency: Tangency, tolerance: float, *, limit: bool) -> Rates:
    """Return the integrals of lambda and |J| over the path, up to each output time."""

    def at(node: Node) -> _Rate:
        return _at(path, node, tangency, min(_OF_RATES * tolerance, _LOOSEST), limit=limit)

    inner = []
    for number, step in enumerate(path.nodes):
        reached(f"rates in step {number + 1} of {len(path.nodes)}", number / len(path.nodes))
        inner.append([at(node) for node in step])
    ends = [(at(first), at(last)) for _, first, last in path.smooth]
    values = np.array([[rate[:3] for rate in step] for step in inner]).reshape(len(inner), NODES, 3)
    lengths, of_time = np.array([step.h for step in path.steps]), np.zeros(len(inner))
    for (steps, _, _), (first, last) in zip(path.smooth, ends, strict=True):
        both = [quadrature.errors(lengths[steps], values[steps, :, k], first[k], last[k]) for k in (0, 1)]
        of_time[steps] = np.maximum(*both)

    def integral(steps: Array) -> Array:
        return np.concatenate([[0.0], np.cumsum(steps)])[path.ends]

    logarithmic, norm, error = (integral(quadrature.integrals(lengths, values[..., k])) for k in range(3))
    every = [rate for several in (*inner, *ends) for rate in several]
    products, converged = sum(rate.products for rate in every), all(rate.converged for rate in every)
    return Rates(logarithmic, norm, error + integral(of_time), products, converged)


def _at(path: Path, node: Node, tangency: Tangency, tolerance: float, *, limit: bool) -> _Rate:
    """At one time: Ritz values lie below what they approximate, so that their errors are added."""
    cloud, allowed = path.cloud.moved(node.points), tangency.projector(node.points)
    linear, shape, weights = path.flow.linearised(cloud, node.t), node.points.shape, cloud.weights
    size = largest_singular(
        lambda h: allowed(linear.tangent(allowed(h))), lambda p: allowed(linear.adjoint(allowed(p))),
        shape, weights=weights, tolerance=tolerance,
    )  # fmt: skip
    # Directions across the ellipsoid, which do not count, are moved out of the way.
    away = 0.0 if tangency.free else 2 * size.value

    def forward(h: Array) -> Array:
        inner = allowed(h)
        return allowed(linear.tangent(inner)) - (away * (h - inner) if away else 0.0)

    def backward(p: Array) -> Array:
        inner = allowed(p)
        return allowed(linear.adjoint(inner)) - (away * (p - inner) if away else 0.0)

    rate = largest_eigenvalue(forward, backward, shape, weights=weights, tolerance=tolerance)
    one, other = rate.value + rate.error, size.value + size.error
    if limit:
        blocks = tangency.blocks(node.points)
        slopes = blocks @ path.flow.jacobian(cloud, node.points, node.t) @ blocks
        slopes = slopes if tangency.free else slopes - away * (np.eye(shape[1]) - blocks)
        one = max(one, float(np.linalg.eigvalsh(slopes + slopes.swapaxes(1, 2))[:, -1].max() / 2))
        other = max(other, float(spectral(blocks @ slopes @ blocks).max()))
    settled = rate.converged and size.converged
    return _Rate(one, other, max(rate.error, size.error), rate.products + size.products, settled)


def spectral(matrices: Array) -> Array:
    """|B| of each (m, d, d)."""
    if matrices.shape[1:] == (1, 1):
        return np.abs(matrices[:, 0, 0])
    if matrices.shape[1:] == (2, 2):  # hundred times faster than the SVD
        a, b, c, d = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 0], matrices[:, 1, 1]
        norms: Array = np.hypot(a + d, b - c) / 2 + np.hypot(a - d, b + c) / 2
        return norms
    return np.asarray(np.linalg.svd(matrices, compute_uv=False)[:, 0], dtype=np.float64)
