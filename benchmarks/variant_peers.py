"""Every attention over all pairs by NumPy, PyTorch, JAX and KeOps, each as fast as its own means allow.

An attention is one or more sums over y_j, of targets q_i and with a bias b_j, perhaps over j <= i only:

    softmax   sum_j e^{<q, y> + b} y / sum_j e^{<q, y> + b},   and the logarithm of the denominator, "log-sum"
    kernels   sum_j k(<q, y>) y / n

A library is a function (kind, q, keys, values, bias, threads, **setting) of arrays (m, d), (n, d), (n, d) and (n,) or
None; ``velocity`` makes each attention of it. Kinds: softmax, causal, log-sum, sigmoid, exponential, relu.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from contestants import CHECKED, Contestant, Effort, Outcome, timed
from problems import Array, Problem, radius
from timing import Unavailable, repeat

ATTENTIONS = ("l2", "sigmoid", "exponential", "relu", "sinkhorn", "masked")
HALF_STEPS = 3  # of Sinkhorn
_TRIAL = 1024  # targets of a first, short run
Library = Callable[..., Array]


def velocity(attention: str, problem: Problem, sums: Library, points: Array) -> Array:
    """The velocity of points in each other's field."""
    q = points @ problem.A.T
    if attention == "l2":
        found = sums("softmax", q, points, points, -(points * points).sum(axis=1))
    elif attention == "masked":
        found = sums("causal", q, points, points, None)
    elif attention == "sinkhorn":  # rows, columns, rows
        f = sums("log-sum", q, points, points, None)
        g = sums("log-sum", points, q, points, -f)
        found = sums("softmax", q, points, points, -g)
    else:
        found = sums(attention, q, points, points, None) / len(points)
    return found @ problem.V.T


def ours(problem: Problem, effort: Effort, threads: int, attention: str) -> Outcome:
    """The same by vlasov; the cloud is a new measure each time, as in a time loop."""
    import vlasov as vl

    A, V, n = problem.A, problem.V, problem.n
    made: dict[str, Callable[[], Any]] = {
        "l2": lambda: vl.L2(A / 2, np.eye(problem.d), V),
        "sigmoid": lambda: vl.Sigmoid(A=A, V=V),
        "exponential": lambda: vl.Exponential(A=A, V=V),
        "relu": lambda: vl.ReLU(A=A, V=V),
        "sinkhorn": lambda: vl.Sinkhorn(A=A, V=V, iterations=HALF_STEPS),
        "masked": lambda: vl.Masked(vl.Softmax(A=A, V=V)),
    }
    gamma, points = made[attention](), problem.points()
    cloud = vl.Particles(points, s=(np.arange(n) + 0.5) / n if attention == "masked" else None)

    def evaluate() -> Any:
        return gamma.field(cloud.moved(points), points, method="all-pairs")

    evaluate()
    field = evaluate()
    return Outcome(timed(evaluate, threads, effort), n, checked(field.values), field.method, field.error_bound)


def peer(problem: Problem, effort: Effort, threads: int, attention: str, name: str) -> Outcome:
    """The same by a library, with the setting that is fastest for some of the targets."""
    sums, settings, _, _ = LIBRARIES[name]
    points, times = problem.points(), {}

    def evaluate(**setting: Any) -> Array:
        return velocity(attention, problem, partial(sums, threads=threads, **setting), points)

    kind = attention if attention in ("sigmoid", "exponential", "relu") else "softmax"
    some = (points @ problem.A.T)[:_TRIAL], points, points, None
    for number, setting in enumerate(settings if len(settings) > 1 else ()):
        sums(kind, *some, threads=threads, **setting)
        trial = partial(sums, kind, *some, threads=threads, **setting)
        times[number] = repeat(trial, budget=0.0, least=2).best(threads)
    best = settings[min(times, key=times.__getitem__, default=0)]
    values = evaluate(**best)
    timing = timed(partial(evaluate, **best), threads, effort)
    return Outcome(timing, problem.n, checked(values), ", ".join(f"{key} {value}" for key, value in best.items()))


def reference(problem: Problem, attention: str) -> tuple[Array, float]:
    """Velocities at some targets by plain NumPy, extended but for Sinkhorn's potentials; and the cloud's radius."""
    points = problem.points()
    rows, exact = chosen(problem.n), []
    queries, extended = points @ problem.A.T, points.astype(np.longdouble)
    bias = np.zeros(problem.n)
    if attention == "l2":
        bias = -(points * points).sum(axis=1)
    if attention == "sinkhorn":
        f = by_numpy("log-sum", queries, points, points, None, threads=1)
        bias = -by_numpy("log-sum", points, queries, points, -f, threads=1)
    for i in rows:
        seen = slice(0, i + 1 if attention == "masked" else problem.n)
        z = extended[seen] @ (problem.A.astype(np.longdouble) @ extended[i]) + bias[seen]
        if attention in ("l2", "sinkhorn", "masked"):
            k = np.exp(z - z.max())
            k /= k.sum()
        else:
            k = {"relu": np.maximum(z, 0), "exponential": np.exp(z), "sigmoid": 1 / (1 + np.exp(-z))}[attention]
            k = k / problem.n
        exact.append(k @ extended[seen] @ problem.V.astype(np.longdouble).T)
    return np.array(exact), radius(points)


def chosen(n: int) -> Array:
    """Targets that are compared, first and last ones among them."""
    return np.unique(np.linspace(0, n - 1, CHECKED).astype(int))


def checked(values: Array) -> Array:
    """Those at these targets."""
    return np.array(values[chosen(len(values))])


# -- libraries -------------------------------------------------------------------------------------------------------


def by_numpy(
    kind: str, q: Array, keys: Array, values: Array, bias: Array | None, *, threads: int, rows: int = 64, blas: int = 0
) -> Array:
    """Some targets at a time, in place. Only the products use threads."""
    from threadpoolctl import threadpool_limits

    columns, result = np.ascontiguousarray(keys.T), np.empty(len(q) if kind == "log-sum" else q.shape)
    hidden = np.triu(np.full((rows, rows), -np.inf), 1)
    with threadpool_limits(blas or threads):
        for start in range(0, len(q), rows):
            stop = min(start + rows, len(q))
            seen = stop if kind == "causal" else len(keys)
            part = q[start:stop] @ columns[:, :seen]
            if bias is not None:
                part += bias
            if kind == "causal":
                part[:, start:] += hidden[: stop - start, : stop - start]
            result[start:stop] = _finished(kind, part, values[:seen])
    return result


def _finished(kind: str, part: Array, values: Array) -> Array:
    """What a table of exponents comes to."""
    if kind == "relu":
        return np.maximum(part, 0.0, out=part) @ values
    if kind == "exponential":
        return np.exp(part, out=part) @ values
    if kind == "sigmoid":
        np.negative(part, out=part)
        np.exp(part, out=part)
        part += 1.0
        return np.reciprocal(part, out=part) @ values
    top = part.max(axis=1, keepdims=True)
    part -= top
    np.exp(part, out=part)
    total = part.sum(axis=1, keepdims=True)
    return np.log(total[:, 0]) + top[:, 0] if kind == "log-sum" else part @ values / total


def by_torch(
    kind: str, q: Array, keys: Array, values: Array, bias: Array | None, *, threads: int, rows: int = 64
) -> Array:
    """``scaled_dot_product_attention`` for softmax, in four dimensions; else some targets at a time."""
    try:
        import torch
    except ImportError as missing:
        raise Unavailable(str(missing)) from None
    torch.set_num_threads(threads)
    given = [torch.from_numpy(np.ascontiguousarray(array)) for array in (q, keys, values)]
    with torch.inference_mode():
        offset = None if bias is None else torch.from_numpy(bias)
        if kind in ("softmax", "causal"):
            mask = None if offset is None else offset.expand(1, 1, len(q), -1)
            four, attend = [array[None, None] for array in given], torch.nn.functional.scaled_dot_product_attention
            return attend(*four, attn_mask=mask, is_causal=kind == "causal", scale=1.0)[0, 0].numpy()
        act = {"sigmoid": torch.sigmoid_, "relu": torch.relu_, "exponential": torch.exp_}
        result = torch.empty(len(q) if kind == "log-sum" else q.shape, dtype=given[0].dtype)
        for start in range(0, len(q), rows):
            part = given[0][start : start + rows] @ given[1].T
            if offset is not None:
                part += offset
            whole = torch.logsumexp(part, 1) if kind == "log-sum" else act[kind](part) @ given[2]
            result[start : start + rows] = whole
        return result.numpy()


def by_jax(
    kind: str, q: Array, keys: Array, values: Array, bias: Array | None, *, threads: int, batch: int | None = None
) -> Array:
    """``lax.map`` over targets in batches, compiled as one function."""
    try:
        import jax
    except ImportError as missing:
        raise Unavailable(str(missing)) from None
    jax.config.update("jax_enable_x64", True)
    zero = np.zeros(1) if bias is None else bias
    return np.asarray(_jax_function(kind, batch)(q, np.arange(len(q)), keys, values, zero))


@cache
def _jax_function(kind: str, batch: int | None) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    kernels = {"sigmoid": jax.nn.sigmoid, "relu": lambda z: jnp.maximum(z, 0.0), "exponential": jnp.exp}

    def one(query: Any, place: Any, keys: Any, values: Any, bias: Any) -> Any:
        z = keys @ query + bias
        if kind in kernels:
            return kernels[kind](z) @ values
        if kind == "causal":
            z = jnp.where(jnp.arange(len(keys)) <= place, z, -jnp.inf)
        if kind == "log-sum":
            return jax.scipy.special.logsumexp(z)
        weights = jnp.exp(z - z.max())
        return weights @ values / weights.sum()

    @jax.jit
    def all_of_them(q: Any, places: Any, keys: Any, values: Any, bias: Any) -> Any:
        return jax.lax.map(lambda of: one(of[0], of[1], keys, values, bias), (q, places), batch_size=batch)

    return all_of_them


_SUMS = {
    "softmax": "Exp((q|y) + b - s)",
    "log-sum": "Exp((q|y) + b - s)",
    "causal": "Exp((q|y) + b - s) * Step(i - j)",
    "sigmoid": "Inv(IntCst(1) + Exp(-(q|y)))",
    "exponential": "Exp((q|y))",
    "relu": "ReLU((q|y))",
}


def by_keops(kind: str, q: Array, keys: Array, values: Array, bias: Array | None, *, threads: int) -> Array:
    """KeOps on the CPU, compiled for this processor, with a shift by a bound in place of a running maximum."""
    try:
        from pykeops.numpy import Genred
    except ImportError as missing:
        raise Unavailable(str(missing)) from None
    m, n, normalised = len(q), len(keys), kind in ("softmax", "causal", "log-sum")
    b = (np.zeros(n) if bias is None else bias)[:, None]
    top = np.sqrt((q * q).sum(axis=1) * (keys * keys).sum(axis=1).max())[:, None] + b.max()
    ones = np.ones((n, 1))
    summed = ones if kind == "log-sum" else np.hstack([values, ones]) if normalised else values
    given = {"q": q, "y": keys, "v": summed}
    if normalised:
        given |= {"b": b, "s": top}
    if kind == "causal":
        given |= {"i": np.arange(m)[:, None] + 0.5, "j": np.arange(float(n))[:, None]}
    places = {"q": "Vi", "s": "Vi", "i": "Vi", "y": "Vj", "v": "Vj", "b": "Vj", "j": "Vj"}
    aliases = [f"{name}={places[name]}({array.shape[1]})" for name, array in given.items()]
    plain = Genred(f"{_SUMS[kind]} * v", aliases, reduction_op="Sum", axis=1)
    found = plain(*(np.ascontiguousarray(array) for array in given.values()), backend="CPU")
    if kind == "log-sum":
        return np.log(found[:, 0]) + top[:, 0]
    return found[:, :-1] / found[:, -1:] if normalised else found


LIBRARIES: dict[str, tuple[Library, Sequence[Mapping[str, Any]], Mapping[str, str], bool]] = {
    "numpy": (by_numpy, [{"rows": rows, "blas": blas} for rows in (16, 64, 256) for blas in (0, 1)], {}, False),
    "torch": (by_torch, [{"rows": rows} for rows in (16, 64, 256)], {}, False),
    "jax": (by_jax, [{"batch": batch} for batch in (None, 16, 64, 256)], {}, True),
    "keops": (
        by_keops,
        [{}],
        {
            "CXXFLAGS": "-march=native -ffast-math",
            "KEOPS_CACHE_FOLDER": os.path.expanduser("~/.cache/keops-native"),
            "PYKEOPS_VERBOSE": "0",
            "KEOPS_VERBOSE": "0",
        },
        False,
    ),
}


def contestants(attention: str) -> list[Contestant]:
    """Ours first."""
    return [
        Contestant("vlasov", ours, (attention,)),
        *(
            Contestant(name, peer, (attention, name), environment, pinned)
            for name, (_, _, environment, pinned) in LIBRARIES.items()
        ),
    ]
