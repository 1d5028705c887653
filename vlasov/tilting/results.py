"""What is asked of a sum over a tilted measure, and what comes back: one type for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from vlasov.checks import Array

QUADRATIC: dict[str, Literal["float64", "float32"]] = {"all-pairs": "float64", "all-pairs-float32": "float32"}
METHODS = ("auto", *QUADRATIC, "laplace", "lattice")
_FEW_ENTRIES = 256  # of a matrix


class Request(NamedTuple):
    """What is asked for beside the mean, how good, and by what method.

    Attributes
    ----------
    tolerance
        Largest error of the mean that is accepted, relative to the radius of the sources.
    method
        "auto", "all-pairs", "all-pairs-float32" (twice as fast, seven digits), "laplace" (linear cost, d <= 3), or
        "lattice" (densities on uniform grids).
    log_mass, covariance
        Whether log Z and the covariance are wanted.

    Examples
    --------
    >>> vl.tilting.Request(1e-6)._replace(method="laplace")
    Request(tolerance=1e-06, method='laplace', log_mass=False, covariance=False)
    """

    tolerance: float = 1e-10
    method: str = "auto"
    log_mass: bool = False
    covariance: bool = False


class Head(NamedTuple):
    """V m_nu(A x) with nu ~ e^{-<y, P y>} mu; None: P = 0. Sums ignore P: the measure has taken it into the weights.

    Attributes
    ----------
    A
        Shape (d, d): <A x, y> is the score of y as seen from x.
    V
        Values, shape (k, d).
    P
        Shape (d, d), or None.

    Examples
    --------
    >>> vl.Softmax(A=[[2.0]], V=[[3.0]]).heads_at(0.0)
    (Head(A=array([[2.]]), V=array([[3.]]), P=None),)
    """

    A: Array
    V: Array
    P: Array | None = None


class Sums(NamedTuple):
    """What every method returns: V m (m, k), log Z (m,) and the covariance (m, d, d), None where not asked for.

    ``error_bound`` is that of the mean m itself, without V; ``mass_error`` that of log Z.

    Attributes
    ----------
    mean
        V m, shape (m, k).
    log_mass
        log Z, shape (m,), or None.
    covariance
        Shape (m, d, d), or None.
    method
        How they were evaluated.
    error_bound, mass_error
        On the error of each mean m, and of each log Z.

    Examples
    --------
    >>> vl.tilting.Sums._fields
    ('mean', 'log_mass', 'covariance', 'method', 'error_bound', 'mass_error')
    """

    mean: Array
    log_mass: Array | None
    covariance: Array | None
    method: str
    error_bound: float
    mass_error: float


@dataclass(frozen=True)
class Tilted:
    """A measure tilted by e^{<xi, .>} at m targets xi.

    Attributes
    ----------
    log_mass
        log Z(xi), shape (m,).
    mean
        grad log Z(xi), shape (m, d).
    covariance
        hess log Z(xi), shape (m, d, d), or None where it was not asked for.
    method
        How it was evaluated.
    error_bound
        Bound on the error of each ``mean``, in the Euclidean norm.
    mass_error
        Bound on the error of each ``log_mass``.

    Examples
    --------
    N(0, 1) tilted by e^{xi y} is N(xi, 1), and its mass is e^{xi^2 / 2}:

    >>> tilted = vl.Gaussian(0.0, 1.0).tilted(np.array([[2.0]]))
    >>> tilted.log_mass, tilted.mean
    (array([2.]), array([[2.]]))
    """

    log_mass: Array
    mean: Array
    covariance: Array | None
    method: str
    error_bound: float
    mass_error: float


class Field(NamedTuple):
    """A velocity field at given points, with how it was evaluated and a bound on the error of each velocity.

    The bound is that of the sums over what the measure holds: tokens, a closed form, the cells of a ``Density``. How
    well cells stand for another measure it does not say.

    Attributes
    ----------
    values
        Velocities, shape (m, k).
    method
        How they were evaluated.
    error_bound
        Of each velocity, in the Euclidean norm.

    Examples
    --------
    >>> field = vl.Softmax(A=[[1.0]]).field(vl.Particles([-1.0, 1.0]), [[1.0]])
    >>> field.values.round(6), field.method, field.error_bound < 1e-12
    (array([[0.761594]]), 'all-pairs', True)
    """

    values: Array
    method: str
    error_bound: float


def add_up(fields: Sequence[Field], out: Array | None = None) -> Field:
    """The sum of velocity fields at the same points, into ``out`` if given.

    Parameters
    ----------
    fields
        At least one, all at the same points.
    out
        Memory for the sum, shape (m, k).

    Examples
    --------
    >>> one = vl.tilting.Field(np.array([[1.0, 2.0]]), "all-pairs", 1e-15)
    >>> vl.tilting.add_up([one, one]).values
    array([[2., 4.]])
    """
    total = np.copy(fields[0].values) if out is None else out
    total[...] = fields[0].values
    for field in fields[1:]:
        total += field.values
    return Field(total, joined(field.method for field in fields), sum(field.error_bound for field in fields))


def joined(methods: Iterable[str]) -> str:
    """The names of all methods that took part, such as "all-pairs + laplace"."""
    return " + ".join(sorted({name for method in methods for name in method.split(" + ") if name}))


def longest(rows: Array) -> float:
    """The largest |x|."""
    return math.sqrt(float(np.einsum("nk,nk->n", rows, rows).max(initial=0.0)))


def size_of(values: Array) -> float:
    """|V|, or for many dimensions the bound sqrt(|V|_1 |V|_inf): LAPACK's threads would be in the way of ours."""
    if values.shape == (2, 2):
        (a, b), (c, d) = values.tolist()
        return (math.hypot(a + d, b - c) + math.hypot(a - d, b + c)) / 2
    if values.size <= _FEW_ENTRIES:
        return float(np.linalg.svd(values, compute_uv=False)[0])  # a third of the time of norm(values, 2)
    entries = np.abs(values)
    return math.sqrt(float(entries.sum(axis=0).max()) * float(entries.sum(axis=1).max()))
