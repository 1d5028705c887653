"""What every attention answers: its heads if it has any, its velocity, and three facts about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import reduce
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov.attention import heads as sums, regularity
from vlasov.attention.regularity import Regularity
from vlasov.checks import Array, finite
from vlasov.codec import Described
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, interrupted, warn
from vlasov.linearised import Factors, Linearised
from vlasov.linearised.base import tokens_of
from vlasov.measures import Gaussian, How, Measure
from vlasov.measures.order import checked_places
from vlasov.patience import Patience
from vlasov.schedule import Parameter, breakpoints
from vlasov.tilting import Field, Head, Request


class Attention(Described, ABC):
    """A map from measures to velocity fields, with parameters that may depend on time.

    A subclass says either what its heads are, and everything else follows; or, where its velocity is no sum of tilted
    means, ``evaluate``, ``jacobian`` and ``affine``.

    Examples
    --------
    Any attention moves any measure, and says what holds for it:

    >>> attention, mu = vl.Softmax(A=[[1.0]]), vl.Gaussian(1.0, 2.0)
    >>> attention.velocity(mu, [[3.0]])  # m + Sigma A x
    array([[7.]])
    >>> attention.bounded, attention.equivariant
    (True, True)
    """

    def velocity(
        self,
        measure: Measure,
        x: ArrayLike,
        t: float = 0.0,
        *,
        tolerance: float = 1e-10,
        method: str = "auto",
        s: ArrayLike | None = None,
    ) -> Array:
        """Gamma_mu(x) at points (m, d), shape (m, d).

        Parameters
        ----------
        measure
            mu.
        x
            Points, shape (m, d), which may be those of the measure.
        t
            Time, where parameters depend on it.
        tolerance
            Largest error accepted, relative to |V| and the radius of the measure.
        method
            How sums over particles are evaluated: one of ``vlasov.tilting.METHODS``.
        s
            Places of the points in a sequence, for ``Masked`` attention; a measure's own points have theirs.

        Examples
        --------
        >>> attention, tokens = vl.Softmax(A=[[1.0]], V=[[2.0]]), vl.Particles([-1.0, 1.0])
        >>> print(attention.velocity(tokens, [[1.0]]).round(6), (2 * np.tanh(1.0)).round(6))
        [[1.523188]] 1.523188
        """
        return self.field(measure, x, t, tolerance=tolerance, method=method, s=s).values

    def field(
        self,
        measure: Measure,
        x: ArrayLike,
        t: float = 0.0,
        *,
        tolerance: float = 1e-10,
        method: str = "auto",
        out: Array | None = None,
        s: ArrayLike | None = None,
    ) -> Field:
        """The velocity with the method that was chosen and its error bound; as ``velocity``, into ``out`` if given.

        Parameters
        ----------
        measure, x, t, tolerance, method, s
            As in ``velocity``.
        out
            Memory for the result, shape (m, d).

        Examples
        --------
        A hundred thousand tokens in the plane, at linear cost and with a bound:

        >>> cloud = vl.Particles(np.random.default_rng(0).uniform(-1.0, 1.0, (100_000, 2)))
        >>> field = vl.Softmax(A=np.eye(2)).field(cloud, cloud.points, tolerance=1e-9)
        >>> field.method, field.error_bound < 1e-9
        ('laplace', True)
        """
        points, request = measure.at(x), Request(tolerance, method)
        how: How = {"out": out, "workspace": Workspace(Patience())}
        if s is not None:
            how["s"] = checked_places(s, len(points))
            if not self.causal:
                warn(f"{self.kind} attention is not masked: s is not used", UserWarning)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is no number is refused below
                field = self.evaluate(measure, points, t, request, **how)
        except (SystemError, RuntimeError) as error:
            if interrupted(error):
                raise KeyboardInterrupt from None
            raise
        except MemoryError:
            sentence = f"are {len(points):,}, for which memory does not suffice in one call; give fewer at a time"
            raise InputError(sentence, "x") from None
        if not finite(field.values):
            raise InputError(
                "is so large, for this measure, that products <Ax, y> or velocities are no numbers any more; scale "
                "both, A or V down",
                "x",
            )
        return field

    @abstractmethod
    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """The heads at time t with Gamma_mu(x) = sum_h V_h m_{nu_h}(A_h x), nu_h ~ e^{-<y, P_h y>} mu.

        Output matrices are multiplied in, and heads of heads stand side by side. None: no such sum.

        Parameters
        ----------
        t
            Time, where parameters depend on it.

        Examples
        --------
        >>> vl.L2(Q=[[1.0]], K=[[3.0]]).heads_at()  # A = 2 K^T Q and P = K^T K
        (Head(A=array([[6.]]), V=array([[1.]]), P=array([[9.]])),)
        """

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        """The velocity at checked points (m, d): what ``vlasov.flow`` calls.

        Where ``equivariant`` does not hold, nothing is taken away about a point.
        """
        how.pop("memory", None)
        return measure.attend(x, self._sum(t), request, **how)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        """D Gamma_mu(x) at points (m, d), shape (m, d, d).

        Parameters
        ----------
        measure
            mu, which stays as it is.
        x
            Points, shape (m, d).
        t
            Time, where parameters depend on it.

        Examples
        --------
        It is V times the covariance of the tilted measure times A; of N(m, Sigma), V Sigma A:

        >>> vl.Softmax(A=[[3.0]]).jacobian(vl.Gaussian(1.0, 2.0), [[0.0]])
        array([[[6.]]])
        """
        return sums.jacobian(self._sum(t), measure, measure.at(x))

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        """J of X -> Gamma_X(X) at the tokens X of a measure: products J h and J^T p, see ``vlasov.linearised``.

        Parameters
        ----------
        measure
            Tokens: ``Particles``.
        t
            Time, where parameters depend on it.
        request
            How exact products have to be, and by what method.
        **how
            See ``vlasov.measures.How``.

        Returns
        -------
        Linearised
            With ``tangent(h)``, ``adjoint(p)`` and ``error_bound``.

        Examples
        --------
        With A = 0 velocities are the mean, and so is J h:

        >>> products = vl.Softmax(A=[[0.0]]).linearised(vl.Particles([1.0, 5.0]))
        >>> products.tangent([[1.0], [3.0]]).round(12)
        array([[2.],
               [2.]])
        """
        from vlasov.linearised.heads import tilted_means

        tokens, factors = tokens_of(measure, self.dimension), self.factors_at(t)
        if factors is None:
            raise InputError(f"is {self.kind}, which says no derivative; its class must have linearised()", "attention")
        return tilted_means(tokens, factors, request, how.get("workspace"))

    def factors_at(self, t: float = 0.0) -> tuple[Factors, ...] | None:
        """``heads_at`` with what is known of low ranks."""
        heads = self.heads_at(t)
        return None if heads is None else tuple(map(Factors.of_head, heads))

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array] | None:
        """b (d,) and B (d, d) with Gamma(x) = b + B x; None where Gaussians do not stay Gaussian.

        Parameters
        ----------
        gaussian
            mu.
        t
            Time, where parameters depend on it.

        Examples
        --------
        >>> vl.Softmax(A=[[3.0]]).affine(vl.Gaussian(1.0, 2.0))  # m and V Sigma A
        (array([1.]), array([[6.]]))
        >>> vl.Sigmoid(A=[[3.0]]).affine(vl.Gaussian(1.0, 2.0)) is None
        True
        """
        return sums.affine(self._sum(t), gaussian)

    def _sum(self, t: float) -> tuple[Head, ...]:
        heads = self.heads_at(t)
        if heads is None:
            raise NotImplementedError(f"{type(self).__name__} has no heads, so it must say what its velocity is")
        return heads

    # Three facts, which hold for every sum of tilted means

    @property
    def bounded(self) -> bool:
        """Whether |Gamma_mu(x)| <= |V| R for every measure in the ball of radius R."""
        return self.heads_at() is not None

    @property
    def equivariant(self) -> bool:
        """Whether Gamma follows the measure: Gamma_{mu + c}(x) = Gamma_mu(x) + V c, up to a shift of the tilts."""
        return self.heads_at() is not None

    @property
    def continuous(self) -> bool:
        """Whether velocities depend continuously on the tokens; where they jump there is no flow."""
        return True

    def drift(self, t: float = 0.0) -> Array | None:
        """V with x' = V x for a lone token, shape (d, d); None where it obeys another law."""
        return None if self.heads_at(t) is None else self.values(t)

    def regularity(self, radius: float, t: float = 0.0) -> Regularity:
        """How large and how smooth velocities are for measures in the ball of radius R.

        Parameters
        ----------
        radius
            R, of the ball around the origin that holds the support.
        t
            Time, where parameters depend on it.

        Returns
        -------
        Regularity
            ``velocity``, ``slope`` and ``rate``; ``vl.estimates`` has each by its name.

        Examples
        --------
        >>> vl.Softmax(A=[[1.0]]).regularity(radius=2.0)[:2]  # |V| R and |V| |A| R^2
        (2.0, 4.0)
        """
        heads = self.heads_at(t)
        if heads is None:
            raise InputError(f"{self.kind} is not normalised: the theory's estimates do not hold for it", "attention")
        return regularity.add_up(regularity.of_head(head, radius) for head in heads)

    def tears_tails(self, covariance: Array, t: float = 0.0) -> bool:
        """Whether Gaussian tails leave every ball at once, so that there is no solution from them."""
        return False

    @property
    def causal(self) -> bool:
        """Whether velocities depend on places in a sequence: the attention is masked, or one of its heads is."""
        return False

    @property
    def masked(self) -> bool:
        """Whether tokens see nothing but what is before them: not one head is without a mask."""
        return False

    @property
    def unmasked(self) -> Attention:
        """The same without masks: what it is on the product of a law with Uniform[0, 1], which stays one."""
        return self

    # Parameters

    def values(self, t: float = 0.0) -> Array:
        """V at time t, shape ``shape``: what velocities are made of; for several heads the sum of W_h V_h.

        The identity where neither heads nor the class say more.

        Parameters
        ----------
        t
            Time, where parameters depend on it.

        Examples
        --------
        >>> vl.Softmax(A=[[1.0]], V=lambda t: [[1.0 + t]]).values(0.5)
        array([[1.5]])
        """
        heads = self.heads_at(t)
        return np.eye(*self.shape) if heads is None else reduce(np.add, (head.V for head in heads))

    def tilts(self, t: float = 0.0) -> tuple[Array, ...]:
        """A of every head whose velocity is a tilted mean."""
        return tuple(head.A for head in self.heads_at(t) or ())

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Of V: the dimensions of a velocity and of a token."""

    @property
    def dimension(self) -> int:
        """d."""
        return self.shape[1]

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that were given, by name."""

    @property
    def breakpoints(self) -> Array:
        """Times at which a parameter jumps."""
        return np.asarray(breakpoints(list(self.parameters.values())))
