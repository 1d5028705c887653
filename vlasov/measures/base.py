"""What every measure can do: moments, density, sampling, cell averages on a grid, and its tilted mean."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.codec import Described
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, choose
from vlasov.summing import Kernel, KernelSums, exponential
from vlasov.tilting import Field, Head, Request, Tilted, add_up

if TYPE_CHECKING:
    from vlasov.measures.density import Density
    from vlasov.measures.particles import Particles

SAMPLINGS = ("random", "sobol", "quantile", "quadrature")
Seed = int | np.random.SeedSequence
Draw = Callable[[int, int], Array]  # (start, count): points in a cube, piece after piece
Cube = Callable[[int], Draw]  # of a dimension
_PIECE = 16384  # points that are mapped at a time
_MOST_POINTS = 10**12
_MOST_NODES = 4_000_000  # quadrature nodes that a velocity may silently cost


class Memory:
    """What evaluations of one run, in one thread, leave for the next.

    Attributes
    ----------
    kept
        By who has left it, which knows what it is and when it serves.
    told
        Numbers about the run, by the names of its attributes.

    Examples
    --------
    >>> memory = vl.measures.Memory()
    >>> memory.told["sinkhorn_iterations"] = 12
    >>> memory.kept, memory.told
    ({}, {'sinkhorn_iterations': 12})
    """

    def __init__(self) -> None:
        self.kept: dict[Hashable, Any] = {}
        self.told: dict[str, float] = {}


def told_by(memories: Iterable[Memory]) -> dict[str, float]:
    """What several memories tell together: counts add up, of errors the largest counts."""
    every = [memory.told for memory in memories]
    names = sorted({name for told in every for name in told})
    return {name: (max if name.endswith("_error") else sum)(told.get(name, 0) for told in every) for name in names}


class How(TypedDict, total=False):
    """How a velocity is evaluated, beside the request.

    Attributes
    ----------
    workspace
        Scratch memory of the caller, for one thread.
    about
        c: the velocity less V c, which keeps its digits where the measure is small and far from zero.
    out
        Memory for the result, shape (m, k).
    s
        Places of the points in a sequence, shape (m,), for masked attention; the measure's own points have theirs.
    memory
        What is warm from velocities before; sums of tilted means have no use for it.

    Examples
    --------
    >>> how = vl.measures.How(workspace=vl.tilting.Workspace(), out=np.empty((2, 1)))
    >>> tokens = vl.Particles([-1.0, 1.0])
    >>> field = vl.Softmax(A=[[1.0]]).evaluate(tokens, tokens.points, 0.0, vl.tilting.Request(), **how)
    >>> field.values is how["out"]
    True
    """

    workspace: Workspace | None
    about: Array | None
    out: Array | None
    s: Array | None
    memory: Memory | None


class Tiltable(Protocol):
    """A measure, or what is left of one under a quadratic tilt."""

    def tilted(self, xi: Array, request: Request = ..., *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""


class Measure(Described, ABC):
    """A probability measure on R^d.

    Attributes
    ----------
    dimension
        d.
    mean, covariance
        Shapes (d,) and (d, d).
    support_radius
        The largest |x| in the support, infinity if it is unbounded (a ball's ``radius`` is about its own centre).
    support_box
        Lower and upper corner of the smallest box around the support, shapes (d,); infinite where it is unbounded.

    Examples
    --------
    What holds for one holds for all:

    >>> for mu in (vl.Gaussian(0.0, 1.0), vl.Box(-1.0, 1.0), vl.Particles([-1.0, 1.0])):
    ...     print(mu.kind, mu.support_radius, mu.covariance.round(3))
    gaussian inf [[1.]]
    box 1.0 [[0.333]]
    particles 1.0 [[1.]]
    """

    if TYPE_CHECKING:  # subclasses hold these as fields, cached properties or properties

        @property
        def dimension(self) -> int: ...
        @property
        def mean(self) -> Array: ...
        @property
        def covariance(self) -> Array: ...
        @property
        def support_radius(self) -> float: ...
        @property
        def support_box(self) -> tuple[Array, Array]: ...

    def box(self, deviations: float) -> tuple[Array, Array]:
        """``support_box``, with Gaussians cut off at so many standard deviations."""
        return self.support_box

    @abstractmethod
    def density(self, x: ArrayLike) -> Array:
        """Density at points (m, d), shape (m,).

        Parameters
        ----------
        x
            Points, shape (m, d).

        Examples
        --------
        >>> vl.Gaussian(0.0, 1.0).density([[0.0], [1.0]]).round(6)
        array([0.398942, 0.241971])
        """

    @abstractmethod
    def from_cube(self, u: Array) -> Array:
        """Transport the uniform measure on [0, 1]^k (k = ``cube_dimension``) to this one: (n, k) -> (n, d).

        For d = 1 this is the quantile function. Every sampling is a choice of points u.

        Parameters
        ----------
        u
            Points of the cube, shape (n, k).

        Examples
        --------
        >>> vl.Box(1.0, 3.0).from_cube(np.array([[0.25], [0.5]]))
        array([[1.5],
               [2. ]])
        """

    @abstractmethod
    def cumulative(self, x: Array) -> Array:
        """For d = 1: the mass of (-infinity, x], shapes (n, 1) -> (n, 1); ``from_cube`` is its inverse.

        Parameters
        ----------
        x
            Points, shape (n, 1).

        Examples
        --------
        >>> vl.Gaussian(0.0, 1.0).cumulative(np.array([[0.0], [1.96]])).round(3)
        array([[0.5  ],
               [0.975]])
        """

    @abstractmethod
    def quadrature(self, nodes: int) -> Particles:
        """Weighted nodes of Gauss type, ``nodes`` of them per axis: exact moments up to order 2 nodes - 1.

        Parameters
        ----------
        nodes
            How many along each axis.

        Examples
        --------
        Three nodes know the moments of N(0, 1) up to the fifth: the fourth is 3.

        >>> nodes = vl.Gaussian(0.0, 1.0).quadrature(3)
        >>> round(float(nodes.weights @ nodes.points[:, 0] ** 4), 9)
        3.0
        """

    def cell_masses(self, axes: Sequence[Array]) -> Array:
        """Mass in each cell of a tensor grid, given the edges along each axis; shape: number of cells per axis."""
        if self.dimension > 1:
            raise InputError("has no cell averages for d > 1; deposit its sample(n) instead", self.kind)
        return np.diff(self.cumulative(axes[0][:, None])[:, 0])

    def on_grid(self, edges: Sequence[ArrayLike]) -> Density:
        """Averages of the density over the cells of a tensor grid (one array of edges per axis).

        They are exact: closed forms, or quadrature to 1e-12. Mass outside the grid is lost.

        Parameters
        ----------
        edges
            Of the cells, increasing, one array for each axis.

        Examples
        --------
        >>> edges = [0.0, 1.0, 2.0]
        >>> rho = vl.Box([0.0, 0.0], [1.0, 2.0]).on_grid([edges, edges])
        >>> rho.values.round(12)
        array([[0.5, 0.5],
               [0. , 0. ]])
        """
        from vlasov.measures.density import Density
        from vlasov.measures.density.grid import outer, tensor_edges

        axes = tensor_edges(edges, self.dimension)
        masses = self.cell_masses(axes)
        if not masses.any():
            raise InputError("hold none of the measure's mass; extend the grid", "edges")
        return Density(masses / outer([np.diff(axis) for axis in axes]), axes)

    def image(self, matrix: ArrayLike, shift: ArrayLike) -> Measure | None:
        """The law of matrix x + shift, x distributed by this measure, shapes (d, d) and (d,).

        None where that is none of our measures, such as a box that is turned; its ``sample(n)`` has an image always.

        Parameters
        ----------
        matrix, shift
            Of the map, shapes (d, d) and (d,).

        Examples
        --------
        >>> vl.Gaussian(1.0, 1.0).image([[2.0]], [3.0])
        Gaussian(mean=array([5.]), covariance=array([[4.]]))
        >>> box, turn = vl.Box([0.0, 0.0], [1.0, 1.0]), [[1.0, 1.0], [-1.0, 1.0]]
        >>> box.image(turn, [0.0, 0.0]) is None  # a turned box is none
        True
        """
        self._affine(matrix, shift)
        return None

    def _affine(self, matrix: ArrayLike, shift: ArrayLike) -> tuple[Array, Array]:
        d = self.dimension
        a, b = checks.matrix(matrix, "matrix"), checks.vector(shift, "shift", length=d)
        if a.shape != (d, d):
            raise InputError(f"has shape {a.shape} where {(d, d)} is needed", "matrix")
        return a, b

    @property
    def ordered(self) -> bool:
        """Whether it says where in a sequence its tokens stand."""
        return False

    def seen_by(self, x: Array, s: ArrayLike | None) -> Array | None:
        """The places in a sequence from which points (m, d) look, shape (m,), for masked attention.

        None where they make no difference: the product with Uniform[0, 1] looks the same from each. A measure that
        returns places has ``prefix(s)``, and ``attend_prefixes`` and ``summed_prefixes`` beside ``attend``, ``summed``.
        """
        return None

    @property
    def mass(self) -> float:
        """Integral of ``density``: one, but for a ``Density`` whose run lost some."""
        return 1.0

    @property
    def cube_dimension(self) -> int:
        """Dimension of the cube that ``from_cube`` starts from."""
        return self.dimension

    def sample(self, n: int, sampling: str = "random", *, seed: Seed = 0) -> Particles:
        """n particles that stand for this measure.

        Parameters
        ----------
        n
            Number of particles; for "quadrature" n^{1/d} nodes per axis are used, for each component of a mixture.
        sampling
            "random": independent. "sobol": quasi-random, scrambled by the seed. "quantile": midpoints of n equal parts
            of the mass (d = 1). "quadrature": weighted Gauss nodes; smooth integrals converge spectrally.
        seed
            Of random numbers: the same gives the same particles.

        Examples
        --------
        >>> tokens = vl.Gaussian(1.0, 4.0).sample(8, "quadrature")
        >>> tokens.mean.round(9), tokens.covariance.round(9)
        (array([1.]), array([[4.]]))
        >>> vl.Box(0.0, 1.0).sample(4, "quantile").points[:, 0]
        array([0.125, 0.375, 0.625, 0.875])
        """
        n = checks.integer(n, "n", least=1, most=_MOST_POINTS)
        choose(sampling, SAMPLINGS, "sampling")
        if not isinstance(seed, np.random.SeedSequence):
            checks.integer(seed, "seed", least=0, most=checks.SEEDS)
        if sampling == "quadrature":
            return self.quadrature(max(1, round(n ** (1 / self.dimension))))
        if sampling == "quantile" and self.dimension != 1:
            raise InputError(
                f'"quantile" needs d = 1 but this measure has d = {self.dimension}; use "sobol" or "quadrature"',
                "sampling",
            )
        try:
            return self._drawn(n, lambda k: _cube(sampling, n, k, seed))
        except MemoryError:
            size = 8e-9 * n * self.dimension
            raise InputError(f"is {n:,}, of which points would take {size:,.0f} GB; ask for fewer", "n") from None

    def _drawn(self, n: int, cube: Cube) -> Particles:
        """n particles from points of a cube."""
        from vlasov.measures.particles import Particles

        return Particles.equally_weighted(mapped(self.from_cube, self.dimension, cube(self.cube_dimension), n))

    # Tilts

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """This measure tilted by e^{<xi, .>}: log Z, mean and, if asked for, covariance at tilts (m, d).

        Without a closed form, by Gauss nodes: enough of them for the largest tilt.

        Parameters
        ----------
        xi
            Tilts, shape (m, d).
        request
            Tolerance, method, and whether the covariance is wanted.
        workspace
            Scratch memory that repeated calls share.

        Examples
        --------
        Uniform on [-1, 1], tilted by e^{xi y}, has the mean coth xi - 1 / xi:

        >>> tilted = vl.Box(-1.0, 1.0).tilted(np.array([[2.0]]))
        >>> print(tilted.mean.round(6), (1 / np.tanh(2.0) - 1 / 2.0).round(6))
        [[0.537315]] 0.537315
        """
        return GaussNodes(self, None).tilted(xi, request, workspace=workspace)

    def reweighted(self, quadratic: Array | None) -> Tiltable:
        """e^{-<y, P y>} mu with P = ``quadratic``, shape (d, d), whose mass is Z; this measure itself for None."""
        return self if quadratic is None else GaussNodes(self, quadratic)

    def points_for(self, tilt: float) -> Particles:
        """Weighted points that stand for this measure in sums of e^{<xi, y>}, |xi| up to ``tilt``."""
        return _gauss_nodes(self, tilt * math.sqrt(np.trace(self.covariance)))

    def average(self, x: Array, head: Head, request: Request = Request(), **how: Unpack[How]) -> Field:
        """V (m_nu(A x) - about), nu ~ e^{-<y, P y>} mu, at points (m, d): one head of an attention."""
        from vlasov.compiled.products import map_rows

        tilted = self.reweighted(head.P).tilted(map_rows(x, head.A), request, workspace=how.get("workspace"))
        about, values = how.get("about"), how.get("out")
        found = map_rows(tilted.mean if about is None else tilted.mean - about, head.V)
        if values is None:
            values = found
        else:
            np.copyto(values, found)
        return Field(values, tilted.method, float(np.linalg.norm(head.V, 2)) * tilted.error_bound)

    def attend(self, x: Array, heads: Sequence[Head], request: Request = Request(), **how: Unpack[How]) -> Field:
        """The sum of ``average`` over heads."""
        if len(heads) == 1:
            return self.average(x, heads[0], request, **how)
        each: How = {**how, "out": None}
        return add_up([self.average(x, head, request, **each) for head in heads], how.get("out"))

    # Sums with other kernels

    def summed(
        self, xi: Array, kernel: Kernel, request: Request = Request(), *, workspace: Workspace | None = None
    ) -> KernelSums:
        """int (y, 1) k(<xi, y>) dmu(y) at xi (m, d), with a bound on its error; see ``vlasov.summing``."""
        if kernel.name == "exponential":
            return exponential(lambda asked: self.tilted(xi, asked, workspace=workspace), request)
        return self._summed(xi, kernel, request, workspace)

    def _summed(self, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None) -> KernelSums:
        """``summed`` for other kernels. Without a closed form by Gauss nodes, which do not see where ReLU bends."""
        from vlasov.measures.kernel_sums import by_nodes

        if kernel.name == "relu":
            return self._relu_summed(xi, request)
        return by_nodes(self, xi, kernel, request, workspace)

    def _relu_summed(self, xi: Array, request: Request) -> KernelSums:
        sentence = "has no sums with ReLU, whose kink Gauss nodes do not see; use measure.sample(n) in its place"
        raise InputError(sentence, self.kind)

    def at(self, x: ArrayLike) -> Array:
        """Points as (m, d) for this measure's d."""
        return checks.places(x, "x", dimension=self.dimension)


class GaussNodes(NamedTuple):
    """e^{-<y, P y>} mu by Gauss nodes, as many as the tilts need."""

    measure: Measure
    quadratic: Array | None

    def tilted(self, xi: Array, request: Request = Request(), *, workspace: Workspace | None = None) -> Tilted:
        """As ``Measure.tilted``."""
        mu, reach = self.measure, float(np.abs(xi).max(initial=0.0)) * math.sqrt(np.trace(self.measure.covariance))
        if self.quadratic is not None:
            reach += float(np.linalg.norm(self.quadratic, 2)) * mu.support_radius * mu.support_radius
        return _gauss_nodes(mu, reach).reweighted(self.quadratic).tilted(xi, request, workspace=workspace)


def _gauss_nodes(measure: Measure, exponent: float) -> Particles:
    """So many that they serve exponents up to this."""
    return affordable(measure, 32 + math.ceil(1.5 * exponent))


def affordable(measure: Measure, nodes: int) -> Particles:
    """Gauss nodes for a velocity, unless they are too many."""
    if nodes**measure.dimension > _MOST_NODES:
        raise InputError(
            f"its velocity needs {nodes} quadrature nodes on each of {measure.dimension} axes; "
            "use measure.sample(n) in its place",
            measure.kind,
        )
    return measure.quadrature(nodes)


def mapped(function: Callable[[Array], Array], columns: int, draw: Draw, n: int) -> Array:
    """A function of n points that are drawn, (n, columns): in pieces that stay in the cache, by several threads."""
    if n <= _PIECE:
        return function(draw(0, n))
    from numba import get_num_threads

    from vlasov.compiled.threads import in_threads

    points, starts, order = np.empty((n, columns)), iter(range(0, n, _PIECE)), Lock()

    def fill(thread: int, threads: int) -> None:
        while True:
            with order:
                if (start := next(starts, n)) == n:
                    return
                u = draw(start, min(_PIECE, n - start))
            points[start : start + len(u)] = function(u)

    in_threads(get_num_threads(), fill)
    return points


def _cube(sampling: str, n: int, k: int, seed: Seed) -> Draw:
    """A function (start, count) that draws n points in the open unit cube of dimension k, piece after piece."""
    if sampling == "quantile":
        return lambda start, count: (np.arange(start, start + count)[:, None] + 0.5) / n
    rng = np.random.default_rng(seed)
    if sampling == "random":
        return lambda _, count: np.maximum(rng.random((count, k)), 2.0**-54)
    from scipy.stats import qmc

    bits = max(30, math.ceil(math.log2(n)) + 1)
    engine = qmc.Sobol(k, scramble=True, bits=bits, rng=rng)
    # Only full sets of 2^m points are balanced; half a unit in the last bit keeps them off the cube's faces.
    return lambda _, count: engine.random(2 ** math.ceil(math.log2(count)))[:count] + 0.5 ** (bits + 1)
