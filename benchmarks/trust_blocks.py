"""Random blocks: attention with LayerNorm and MLP around it, in flows, layers and studies; ``trust.py --blocks``.

    post-norm   u' = (I - u u^T) D^{-1} (Gamma_mu(D u) + g(D u)),   x = D u,   D = diag(beta) sqrt(d)
    pre-norm    x' = Gamma_{LN#mu}(LN x) + g(LN x)
    g(x) = W s(U x + b)

beta, V and W may jump with time, and data may be tokens that are given. ``trust_block_truth`` solves them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from problems import Array
from trust_problems import Stated, built, nodes, stated

FAMILIES = ("softmax", "l2", "multi-head", "sigmoid", "exponential", "relu", "linear")
_AFFINE = ("softmax", "l2", "multi-head", "linear", "sinkhorn")  # under which Gaussians stay Gaussian
_DATA = ("gaussian", "mixture", "box", "ring")
_ACTIVATIONS = ("gelu", "relu", "tanh", "identity")
_NORMS = {
    "particles": ("post", "post", "pre", ""),
    "layers": ("post", "pre", ""),
    "depth": ("post", "pre", ""),
    "finite-volume": ("pre", ""),
    "gaussian": ("",),
}
SOLVERS = tuple(_NORMS)
_DEPTHS = ((6, 12, 24, 48, 96), (5, 10, 20, 40), (8, 16, 32, 64, 128))


class Mlp(NamedTuple):
    """Of g(x) = W s(U x + b)."""

    w: Array
    u: Array
    b: Array
    kind: str


@dataclass(frozen=True)
class InBlock(Stated):
    """A problem in a block. What jumps has a factor after each of ``jumps``: of beta along axes, of V and W in all."""

    norm: str = ""
    beta: Array | None = None
    mlp: Mlp | None = None
    tokens: tuple[Array, Array] | None = None  # points and weights
    jumps: tuple[float, ...] = ()
    jumping: str = ""  # "beta", "v" or "w"
    factors: tuple[Array, ...] = ()
    depth: int = 0  # of layers
    depths: tuple[int, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict)  # of the solver, beside what ``trust`` asks

    def __str__(self) -> str:
        around = [f"{self.norm}-norm"] * bool(self.norm)
        around += [] if self.mlp is None else [f"{self.mlp.kind} {len(self.mlp.b)}"]
        jumps = f" {self.jumping} jumps" if self.jumps else ""
        given = "" if self.tokens is None else f" {len(self.tokens[1])} tokens"
        layers = f" {self.asked}" if self.depth else ""
        return f"{super().__str__()} {' '.join(around)}{given}{jumps}{layers}"

    def factor(self, name: str, t: float) -> Array:
        """Of a parameter at a time: after a jump at that time."""
        return self.factors[int(np.searchsorted(self.jumps, t, side="right"))] if name == self.jumping else np.ones(1)

    def scale(self, t: float) -> Array:
        """The diagonal of D."""
        beta = np.ones(self.dimension) if self.beta is None else self.beta
        return np.asarray(np.sqrt(self.dimension) * beta * self.factor("beta", t))

    @property
    def by_moments(self) -> bool:
        """Whether the data stay Gaussian."""
        affine = not self.norm and (self.mlp is None or self.mlp.kind == "identity") and self.tokens is None
        return affine and self.data == "gaussian" and self.family in _AFFINE


def in_block(index: int, seed: int, solver: str) -> InBlock:
    """Problem number ``index`` of a seed, for a solver."""
    rng = np.random.default_rng([seed, index, 4])
    families = _AFFINE if solver == "gaussian" else FAMILIES
    plain = stated(index, seed, families, ("gaussian",) if solver == "gaussian" else _DATA)
    d, norm = plain.dimension, str(rng.choice(_NORMS[solver]))
    if solver == "finite-volume" and plain.family == "exponential" and not norm:  # grids refuse tails that are torn
        plain = stated(index, seed, families, ("box", "ring"))
    beta, size = None, 1.0
    if norm:
        beta = None if rng.uniform() < 0.3 else 10.0 ** rng.uniform(-0.5, 0.5, d) * rng.choice([-1.0, 1.0], d)
        size = _second_moment(plain) / (d if beta is None else float(beta @ beta))  # of the tokens that attention sees
    heads = [head._replace(a=head.a * size, p=None if head.p is None else head.p * size) for head in plain.heads]
    if norm == "post" and d > 1 and rng.uniform() < 0.15:
        heads = [head._replace(a=0 * head.a) for head in heads]  # Kuramoto
    mlp = _mlp(d, _reach(plain, beta), solver, rng) if not norm or rng.uniform() < 0.6 else None
    if norm and rng.uniform() < 0.4:  # data that cover the origin
        plain = _centred(plain)
    block = InBlock(**(vars(plain) | {"heads": heads, "options": {}}), norm=norm, beta=beta, mlp=mlp)
    if solver in ("particles", "layers", "depth") and rng.uniform() < (0.3 if solver == "particles" else 0.6):
        block = replace(block, tokens=_tokens(plain, rng))
    if rng.uniform() < 0.3 and solver != "depth":
        block = _jumping(block, rng)
    if solver == "finite-volume" and rng.uniform() < 0.3:
        block = replace(block, options=plain.options)
    return _layered(block, solver, rng)


def _layered(block: InBlock, solver: str, rng: np.random.Generator) -> InBlock:
    if solver == "depth":
        return replace(block, depths=_DEPTHS[int(rng.integers(len(_DEPTHS)))])
    if solver != "layers":
        return block
    depth = int(rng.choice([1, 2, 6, 12, 24, 48, 100]))
    if rng.uniform() < 0.4:  # the talks' form; jumps are between layers
        return replace(block, horizon=float(min(depth, 24)), depth=min(depth, 24), asked={"step": 1.0},
                       jumps=tuple(np.unique(np.ceil(block.jumps)).tolist()),
                       factors=block.factors[: len(np.unique(np.ceil(block.jumps))) + 1])  # fmt: skip
    return replace(block, depth=depth, asked={"depth": depth})


def _mlp(d: int, reach: float, solver: str, rng: np.random.Generator) -> Mlp:
    """Between 1 and 8 hidden units, whose kinks and bends are among the tokens; W of order one."""
    units, kind = int(rng.integers(1, 9)), "identity" if solver == "gaussian" else str(rng.choice(_ACTIVATIONS))
    slope = 10.0 ** rng.uniform(-1.0, 0.5)
    u = slope * rng.normal(size=(units, d)) / reach
    w = rng.normal(size=(d, units)) * rng.uniform(0.2, 1.0) * reach / max(1.0, slope) / units
    return Mlp(w, u, rng.normal(size=units) * float(rng.integers(2)) * slope, kind)


def _second_moment(plain: Stated) -> float:
    x, w = nodes(plain, 6)
    return float(w @ np.square(x).sum(axis=1) / w.sum())


def _reach(plain: Stated, beta: Array | None) -> float:
    """How large tokens are where the MLP sees them."""
    return float(np.sqrt(_second_moment(plain))) if beta is None else float(np.linalg.norm(beta))


def _centred(plain: Stated) -> Stated:
    """The same data about the origin."""
    x, w = nodes(plain, 6)
    shift = -(w @ x) / w.sum()
    move = {
        "gaussian": lambda p: (p[0] + shift, p[1]),
        "box": lambda p: (p[0] + shift, p[1] + shift),
        "ring": lambda p: (*p[:2], p[2] + shift),
    }
    return replace(plain, parts=[(share, kind, move[kind](numbers)) for share, kind, numbers in plain.parts])


def _tokens(plain: Stated, rng: np.random.Generator) -> tuple[Array, Array]:
    """Between 2 and 60."""
    x, w = nodes(plain, 6)
    n = int(rng.integers(2, 61))
    points = x[rng.choice(len(x), n, p=w / w.sum())] + 1e-2 * np.sqrt(np.var(x, axis=0)) * rng.normal(
        size=(n, x.shape[1])
    )
    weights = rng.uniform(0.1, 1.0, n) if rng.uniform() < 0.5 else np.ones(n)
    return points, weights / weights.sum()


def _jumping(block: InBlock, rng: np.random.Generator) -> InBlock:
    names = ["v"] + ["beta"] * bool(block.norm) + ["w"] * (block.mlp is not None)
    name, count = str(rng.choice(names)), int(rng.integers(1, 4))
    jumps = tuple(np.sort(block.horizon * rng.uniform(0.05, 0.95, count)).tolist())
    size = block.dimension if name == "beta" else 1
    factors = tuple(10.0 ** rng.uniform(-0.3, 0.3, size) * rng.choice([-1.0, 1.0], size, p=[0.2, 0.8])
                    for _ in range(count + 1))  # fmt: skip
    return replace(block, jumps=jumps, jumping=name, factors=factors)


def built_block(block: InBlock) -> Any:
    """The problem as the package takes it."""
    import vlasov as vl

    edges = [0.0, *block.jumps, 2 * max(block.horizon, *block.jumps)] if block.jumps else []

    def parameter(name: str, value: Array) -> Any:
        return (
            vl.Piecewise([f * value for f in block.factors], edges) if name == block.jumping and block.jumps else value
        )

    plain = built(block)
    attention = plain.attention
    if block.jumping == "v" and block.jumps:
        heads = attention.heads if isinstance(attention, vl.MultiHead) else [attention]
        moving = [_with_values(head, parameter("v", stated.v)) for head, stated in zip(heads, block.heads, strict=True)]
        one = [np.eye(block.dimension)] * len(moving)
        attention = moving[0] if len(moving) == 1 else vl.MultiHead(moving, one)
    initial = plain.initial if block.tokens is None else vl.Particles(*block.tokens)
    norm = mlp = None
    if block.norm:
        needed = block.beta is not None or block.jumping == "beta"
        beta = np.ones(block.dimension) if block.beta is None else block.beta
        norm = vl.LayerNorm(parameter("beta", beta) if needed else None, placement=block.norm)
    if block.mlp is not None:
        w, u, b, kind = block.mlp
        mlp = vl.MLP(parameter("w", w), u, b, activation=kind)
    return vl.Problem(attention, initial, block.horizon, layer_norm=norm, mlp=mlp)


def _with_values(head: Any, v: Any) -> Any:
    """An attention with another V."""
    import dataclasses

    given = {f.name: getattr(head, f.name) for f in dataclasses.fields(head) if f.init}
    return type(head)(**{name: value for name, value in given.items() if value is not None} | {"V": v})
