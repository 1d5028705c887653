"""The same velocity by NumPy, PyTorch, JAX and KeOps, as fast as each can be made with its own means.

Every peer has the signature (points, weights, A, V, x, dtype, threads, **setting) -> velocities (m, d) and sums over
all pairs. ``PEERS`` lists them with the settings among which the race picks the fastest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from problems import Array
from timing import Unavailable


@dataclass(frozen=True)
class Peer:
    """A contestant.

    Attributes
    ----------
    settings
        Keyword arguments to try; the fastest is raced.
    environment
        Variables for its process.
    pinned
        Whether its process must be bound to cores to keep it to its number of threads.
    """

    name: str
    function: Callable[..., Array]
    settings: Sequence[Mapping[str, Any]] = ({},)
    environment: Mapping[str, str] = field(default_factory=dict)
    pinned: bool = False


def numpy_chunks(
    points: Array,
    weights: Array,
    A: Array,
    V: Array,
    x: Array,
    dtype: DTypeLike,
    threads: int,
    *,
    rows: int = 16,
    blas_threads: int = 0,
) -> Array:
    """Softmax over a few targets at a time, in place. Only the products use threads."""
    from threadpoolctl import threadpool_limits

    values = points.astype(dtype, copy=False)
    keys = np.ascontiguousarray(values.T)
    queries = (x @ A.T).astype(dtype, copy=False)
    bias = _log_weights(weights, dtype)
    means = np.empty_like(queries)
    with threadpool_limits(blas_threads or threads):
        for start in range(0, len(x), rows):
            part = queries[start : start + rows] @ keys
            if bias is not None:
                part += bias
            part -= part.max(axis=1, keepdims=True)
            np.exp(part, out=part)
            np.divide(part @ values, part.sum(axis=1, keepdims=True), out=means[start : start + rows])
    return means @ V.T


def numpy_by_hand(
    points: Array,
    weights: Array,
    A: Array,
    V: Array,
    x: Array,
    dtype: DTypeLike,
    threads: int,
    *,
    targets: int = 32,
    sources: int = 2048,
) -> Array:
    """What an expert gets out of NumPy with our own tricks: tiles in the cache, threads over targets, no maximum.

    With keys (y, 1) and queries (q, -|q| R) one product gives exponents that are not positive; values (w y, w) give
    numerator and denominator at once. It is for moderate |q| R only.
    """
    queries = x @ A.T
    shift = np.sqrt((queries**2).sum(axis=1)) * np.sqrt((points**2).sum(axis=1).max())
    if shift.max(initial=0.0) > (340 if np.dtype(dtype) == np.float64 else 40):
        raise Unavailable("exponents are too large for a shift by their bound")
    ones = np.ones((len(points), 1))
    keys = np.hstack([points, ones]).astype(dtype)
    values = np.ascontiguousarray((len(points) * weights[:, None] * np.hstack([points, ones])).T.astype(dtype))
    columns = np.ascontiguousarray(np.hstack([queries, -shift[:, None]]).T.astype(dtype))
    means = np.empty((points.shape[1], len(x)), dtype)

    def strip(begin: int, end: int) -> None:
        buffer = np.empty(targets * sources, dtype)
        for i in range(begin, end, targets):
            part = columns[:, i : min(i + targets, end)]
            sums = np.zeros((len(values), part.shape[1]), dtype)
            for j in range(0, len(points), sources):
                tile = keys[j : j + sources]
                exponents = buffer[: len(tile) * part.shape[1]].reshape(len(tile), -1)
                np.matmul(tile, part, out=exponents)
                np.exp(exponents, out=exponents)
                sums += values[:, j : j + sources] @ exponents
            np.divide(sums[:-1], sums[-1], out=means[:, i : i + part.shape[1]])

    step = targets * max(1, len(x) // (4 * threads * targets))
    begins = range(0, len(x), step)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(strip, begins, (min(begin + step, len(x)) for begin in begins)))
    return means.T @ V.T


def torch_attention(
    points: Array, weights: Array, A: Array, V: Array, x: Array, dtype: DTypeLike, threads: int
) -> Array:
    """``scaled_dot_product_attention``; inputs (1, 1, n, d), or else it makes an n x n matrix."""
    try:
        import torch
    except ImportError as missing:
        raise Unavailable(str(missing)) from None
    torch.set_num_threads(threads)
    queries = torch.from_numpy((x @ A.T).astype(dtype, copy=False))[None, None]
    values = torch.from_numpy(points.astype(dtype, copy=False))[None, None]
    bias = _log_weights(weights, dtype)
    mask = None if bias is None else torch.from_numpy(bias).expand(1, 1, len(x), -1)
    with torch.inference_mode():
        means = torch.nn.functional.scaled_dot_product_attention(queries, values, values, attn_mask=mask, scale=1.0)
    return means[0, 0].numpy() @ V.T


def jax_map(
    points: Array,
    weights: Array,
    A: Array,
    V: Array,
    x: Array,
    dtype: DTypeLike,
    threads: int,
    *,
    batch: int | None = None,
    columns: bool = True,
) -> Array:
    """``lax.map`` over targets in batches, compiled as one function."""
    try:
        import jax
    except ImportError as missing:
        raise Unavailable(str(missing)) from None
    jax.config.update("jax_enable_x64", True)
    values = points.astype(dtype, copy=False)
    bias = _log_weights(weights, dtype)
    means = _jax_function(batch, columns)(
        (x @ A.T).astype(dtype, copy=False),
        np.ascontiguousarray(values.T),
        values,
        np.zeros(1, dtype) if bias is None else bias,
    )
    return np.asarray(means) @ V.T


@cache
def _jax_function(batch: int | None, columns: bool) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def mean(query: Any, keys: Any, values: Any, bias: Any) -> Any:
        exponents = (query @ keys if columns else values @ query) + bias
        weights = jnp.exp(exponents - exponents.max())
        return (keys @ weights if columns else weights @ values) / weights.sum()

    @jax.jit
    def means(queries: Any, keys: Any, values: Any, bias: Any) -> Any:
        return jax.lax.map(lambda query: mean(query, keys, values, bias), queries, batch_size=batch)

    return means


def keops(
    points: Array,
    weights: Array,
    A: Array,
    V: Array,
    x: Array,
    dtype: DTypeLike,
    threads: int,
    *,
    shifted: bool = True,
) -> Array:
    """KeOps on the CPU, compiled for this processor; ``shifted`` sums e^{<q, y> - |q| R} without a running maximum."""
    try:
        from pykeops.numpy import Genred
    except ImportError as missing:
        raise Unavailable(str(missing)) from None
    d = points.shape[1]
    queries = np.ascontiguousarray((x @ A.T).astype(dtype, copy=False))
    keys = np.ascontiguousarray(points.astype(dtype, copy=False))
    if not shifted:
        bias = (np.log(weights * len(weights))[:, None]).astype(dtype)
        softmax = Genred(
            "(q|y) + b",
            [f"q=Vi({d})", f"y=Vj({d})", "b=Vj(1)", f"v=Vj({d})"],
            reduction_op="SumSoftMaxWeight",
            axis=1,
            formula2="v",
        )
        return softmax(queries, keys, bias, keys, backend="CPU") @ V.T
    largest = np.sqrt((points**2).sum(axis=1).max())
    shift = (np.sqrt((queries.astype(float) ** 2).sum(axis=1)) * largest)[:, None].astype(dtype)
    if shift.max(initial=0.0) > (340 if np.dtype(dtype) == np.float64 else 40):
        raise Unavailable("exponents are too large for a shift by their bound")
    values = (len(weights) * weights[:, None] * np.hstack([points, np.ones((len(points), 1))])).astype(dtype)
    plain = Genred(
        "Exp((q|y) - s) * v",
        [f"q=Vi({d})", f"y=Vj({d})", "s=Vi(1)", f"v=Vj({d + 1})"],
        reduction_op="Sum",
        axis=1,
    )
    sums = plain(queries, keys, shift, values, backend="CPU")
    return sums[:, :-1] / sums[:, -1:] @ V.T


def _log_weights(weights: Array, dtype: DTypeLike) -> Array | None:
    """Log of the weights, None if they are equal: then no peer pays for them."""
    return None if (weights == weights[0]).all() else np.log(weights).astype(dtype)


PEERS = (
    Peer(
        "numpy chunks",
        numpy_chunks,
        [{"rows": rows, "blas_threads": blas} for blas in (1, 0) for rows in (1, 4, 16, 64, 256)],
    ),
    Peer("torch SDPA", torch_attention),
    Peer(
        "JAX lax.map",
        jax_map,
        [
            *({"batch": batch, "columns": True} for batch in (None, 16, 64, 128, 256)),
            *({"batch": batch, "columns": False} for batch in (None, 64)),
        ],
        pinned=True,  # XLA takes all cores that it may run on, whatever the variables say
    ),
    Peer(
        "KeOps",
        keops,
        [{"shifted": True}, {"shifted": False}],
        environment={
            "CXXFLAGS": "-march=native -ffast-math",
            "KEOPS_CACHE_FOLDER": os.path.expanduser("~/.cache/keops-native"),
            "PYKEOPS_VERBOSE": "0",
            "KEOPS_VERBOSE": "0",
        },
    ),
)
# Shown beside the peers, but not one of them: it is our own algorithm, in NumPy.
BY_HAND = Peer(
    "numpy by hand",
    numpy_by_hand,
    [{"targets": t, "sources": s} for t, s in ((32, 2048), (64, 1024), (256, 512), (512, 512))],
    environment={"OPENBLAS_NUM_THREADS": "1"},  # one thread per strip of targets
)


def fft_convolution(masses: Array, axes: Sequence[Array], A: Array, threads: int) -> Callable[[], Array]:
    """Tilted means at all cell centres of a uniform grid for symmetric A, by SciPy's FFT: a function to be timed.

        e^{<Ax, y>} = e^{<x, Ax>/2} e^{<y, Ay>/2} G(x - y),   G(z) = e^{-<z, Az>/2}
        m(x) = x - (zG * f)(x) / (G * f)(x),                  f(y) = mass(y) e^{<y, Ay>/2}

    The transforms of G and zG are made once and not timed: in a time loop they serve every step.
    """
    from scipy import fft

    shape = masses.shape
    padded = [fft.next_fast_len(2 * count - 1, real=True) for count in shape]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"))
    growth = np.einsum("kij,kl,lij->ij", centres, A, centres) / 2
    growth = np.exp(growth - growth.max())
    steps = [fft.fftfreq(size, 1 / size) * (axis[1] - axis[0]) for size, axis in zip(padded, axes, strict=True)]
    distance = np.stack(np.meshgrid(*steps, indexing="ij"))
    kernel = np.exp(-np.einsum("kij,kl,lij->ij", distance, A, distance) / 2)
    transforms = [fft.rfftn(part, workers=threads) for part in (kernel, *(distance * kernel))]

    def mean() -> Array:
        spectrum = fft.rfftn(masses * growth, s=padded, workers=threads)
        mass, *first = (
            fft.irfftn(spectrum * transform, s=padded, workers=threads)[: shape[0], : shape[1]]
            for transform in transforms
        )
        return centres - np.stack(first) / mass

    return mean
