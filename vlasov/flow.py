"""The velocity of a problem as one object, x' = Gamma_mu(x): what every solver and study evaluates.

A flow belongs to one run and one thread. It holds what evaluations share - scratch memory, the tolerance and the method
asked for - and remembers how velocities were evaluated and how large their errors may be. Measures, attentions and
problems are values, which any number of flows and threads may share.
"""

from __future__ import annotations

import numpy as np

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.linearised import Linearised
from vlasov.measures import Gaussian, How, Measure, Memory, Particles
from vlasov.measures.base import told_by
from vlasov.patience import Patience
from vlasov.tilting import Field, Request, attend_systems

_REMEMBERED = 2_000_000  # numbers in several systems; of more, nothing is kept, which would take a GB


class Flow:
    """Gamma_mu(x) at time t, for one run in one thread.

    Parameters
    ----------
    attention
        The map from measures to velocities.
    tolerance
        Largest error of a velocity that is accepted, relative to |V| and the radius of the measure.
    method
        How sums over particles are evaluated: one of ``vlasov.tilting.METHODS``.

    Attributes
    ----------
    evaluations
        How often ``velocity`` was called.
    methods
        Those that were chosen.
    error_bound
        The largest bound on the error of a velocity so far.

    Examples
    --------
    >>> tokens = vl.Particles([-1.0, 1.0])
    >>> flow = vl.Problem(vl.Softmax(A=[[1.0]]), tokens, horizon=1.0).flow(tolerance=1e-8)
    >>> flow.velocity(tokens, tokens.points, 0.0).values.round(6), flow.evaluations, flow.methods
    (array([[-0.761594],
           [ 0.761594]]), 1, {'all-pairs'})
    """

    def __init__(self, attention: Attention, *, tolerance: float = 1e-10, method: str = "auto") -> None:
        self.attention, self.request = attention, Request(tolerance, method)
        self.evaluations, self.error_bound, self._slopes = 0, 0.0, 0
        self.methods: set[str] = set()
        self._workspace, self._memories = Workspace(), {0: Memory()}

    def velocity(
        self,
        measure: Measure,
        x: Array,
        t: float,
        *,
        about: Array | None = None,
        out: Array | None = None,
        system: int = 0,
        s: Array | None = None,
    ) -> Field:
        """Gamma_mu(x) at points (m, d), which may be those of the measure.

        Parameters
        ----------
        measure
            mu.
        x
            Points, shape (m, d).
        t
            Time.
        about
            c: the velocity less ``base(c, t)``, which keeps its digits where the measure is small and far from zero.
        out
            Memory for the result, shape (m, d).
        system
            Of several independent ones that this flow moves: what is remembered of earlier times is its own.
        s
            Places of the points in a sequence, shape (m,), where the attention is masked and x are not the measure's.

        Examples
        --------
        >>> tokens = vl.Particles([-1.0, 1.0])
        >>> flow = vl.Problem(vl.Softmax(A=[[1.0]]), tokens, horizon=1.0).flow()
        >>> flow.velocity(tokens, [[1.0]], 0.0).values.round(6), flow.evaluations
        (array([[0.761594]]), 1)
        """
        memory = self._memories.setdefault(system, Memory())
        points, how = measure.at(x), How(workspace=self._workspace, about=about, out=out, memory=memory)
        if s is not None:
            how["s"] = s
        field = self.attention.evaluate(measure, points, t, self.request, **how)
        if out is not None and field.values is not out:  # an attention of one's own need not know of it
            np.copyto(out, field.values)
            field = field._replace(values=out)
        self.evaluations += 1
        self.methods.add(field.method)
        self.error_bound = max(self.error_bound, field.error_bound)
        self.patience.tick("velocities", self.evaluations)
        return field

    def velocity_of_systems(self, clouds: Particles, sources: Array, x: Array, t: float, out: Array) -> None:
        """Velocities at x (b, m, d) in b independent systems of tokens (b, n, d), into ``out`` (b, m, d).

        The results are those of b calls, to the last bit.

        Parameters
        ----------
        clouds
            A measure with the weights of the tokens, which are those of every system.
        """
        heads = self.attention.heads_at(t)
        if heads is not None and len(heads) == 1 and heads[0].P is None:
            logs = clouds.unequal_log_weights
            shared = None if logs is None else np.broadcast_to(logs, sources.shape[:2])
            attend_systems(sources, shared, x, heads[0], self.request, out=out)
            return
        same = sources.strides[0] == 0  # one system that moves several clouds of targets
        many = not same and sources.size > _REMEMBERED
        for b, (points, targets, result) in enumerate(zip(sources, x, out, strict=True)):
            self.velocity(clouds.moved(points), targets, t, out=result, system=0 if same or many else b)
            if many:
                self._memories[0].kept.clear()

    @property
    def patience(self) -> Patience:
        """Of who waits for the velocities, and is told if they take long; at first nobody's."""
        return self._workspace.patience

    @patience.setter
    def patience(self, whose: Patience) -> None:
        self._workspace.patience = whose

    @property
    def told(self) -> dict[str, float]:
        """What attentions say about all velocities so far: counts, and largest errors."""
        return told_by(self._memories.values())

    def base(self, about: Array, t: float) -> Array:
        """V c, what ``velocity`` leaves out about c; zero where velocities do not follow the measure. Shape (d,)."""
        return self.attention.values(t) @ about if self.attention.equivariant else np.zeros_like(about)

    def jacobian(self, measure: Measure, x: Array, t: float) -> Array:
        """D Gamma_mu(x) at points (m, d), shape (m, d, d)."""
        slopes = self.attention.jacobian(measure, x, t)
        self._slopes += 1
        self.patience.tick("Jacobians", self._slopes)
        return slopes

    def linearised(self, measure: Measure, t: float = 0.0, *, system: int = 0) -> Linearised:
        """J of X -> Gamma_X(X) at the tokens of a measure: what many products at one cloud share."""
        how = How(workspace=self._workspace, memory=self._memories.setdefault(system, Memory()))
        return self.attention.linearised(measure, t, self.request, **how)

    def tangent(self, measure: Measure, h: Array, t: float = 0.0) -> Array:
        """J h, shapes (n, d) -> (n, k); J of X -> Gamma_X(X).

        Parameters
        ----------
        measure
            Tokens: ``Particles``.
        h
            A change of each token, shape (n, d).
        t
            Time.

        Examples
        --------
        With A = 0 velocities are the mean, and so is J h:

        >>> tokens = vl.Particles([1.0, 5.0])
        >>> flow = vl.Problem(vl.Softmax(A=[[0.0]]), tokens, horizon=1.0).flow()
        >>> flow.tangent(tokens, np.array([[1.0], [3.0]])).round(12)
        array([[2.],
               [2.]])
        """
        return self.linearised(measure, t).tangent(h)

    def adjoint(self, measure: Measure, p: Array, t: float = 0.0) -> Array:
        """J^T p, shapes (n, k) -> (n, d), the plain transpose: <p, J h> = <J^T p, h>.

        Parameters
        ----------
        measure
            Tokens: ``Particles``.
        p
            A covector of each velocity, shape (n, k).
        t
            Time.

        Examples
        --------
        >>> tokens = vl.Particles([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
        >>> flow = vl.Problem(vl.Softmax(A=np.eye(2)), tokens, horizon=1.0).flow()
        >>> h, p = np.random.default_rng(0).normal(size=(2, 3, 2))
        >>> forth, back = np.sum(p * flow.tangent(tokens, h)), np.sum(flow.adjoint(tokens, p) * h)
        >>> bool(np.isclose(forth, back))
        True
        """
        return self.linearised(measure, t).adjoint(p)

    def affine(self, gaussian: Gaussian, t: float) -> tuple[Array, Array] | None:
        """b (d,) and B (d, d) with Gamma(x) = b + B x; None where Gaussians do not stay Gaussian."""
        return self.attention.affine(gaussian, t)

    def tilts(self, t: float) -> tuple[Array, ...]:
        """A of every head whose velocity is a tilted mean."""
        return self.attention.tilts(t)

    def values(self, t: float) -> Array:
        """V, or the sum of W_h V_h: what velocities are made of, shape (d, d)."""
        return self.attention.values(t)

    @property
    def bounded(self) -> bool:
        """Whether |Gamma_mu(x)| <= |V| R for every measure in the ball of radius R."""
        return self.attention.bounded

    @property
    def dimension(self) -> int:
        """d."""
        return self.attention.dimension

    @property
    def breakpoints(self) -> Array:
        """Times at which a parameter jumps: a solver must not step across them."""
        return self.attention.breakpoints
