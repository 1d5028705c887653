"""Race products with the derivative of X -> Gamma_X(X), J h and J^T p; see README.md beside this file.

python benchmarks/tangents.py [--job NAME ...] [--quick] [--threads 1,2] [--json PATH]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from problems import Array
from program import Job, Options, run
from tangents_linear import linear_cost
from timing import Check, Report, Timing, Unavailable, in_child, number, repeat, seconds, wait_for_quiet

PACKAGES = ("vlasov", "numpy", "scipy", "numba", "torch")
HEADER = ("contestant", "threads", "time", "over ours", "cores", "error", "how")
TOKENS, DIMENSION, HEADS = 500, 768, 12
FASTER, TOLERANCE = 1.5, 1e-12

JOBS: dict[str, Job] = {}


def job(function: Job) -> Job:
    """Register a job under its function's name."""
    JOBS[function.__name__.replace("_", "-")] = function
    return function


@job
def heads(options: Options) -> Report:
    """n = 500 tokens in d = 768 under 12 heads of rank 64, against torch.func on the same data."""
    report = Report(f"J h and J^T p, n = {TOKENS}, d = {DIMENSION}, {HEADS} heads", HEADER)
    for threads in options.threads:
        for product, peers in (("J h", TANGENTS), ("J^T p", ADJOINTS)):
            found: dict[str, tuple[list[Timing], Array]] = {}
            for _ in range(options.effort.rounds):
                for name in ("vlasov", *peers):
                    try:
                        wait_for_quiet(options.effort.patience if threads > 1 else 0.0)
                        timing, values = in_child(_timed, product, name, options.effort.budget, threads,
                                                  threads=threads)  # fmt: skip
                    except Unavailable as reason:
                        report.notes.append(f"{name} is left out: {reason}")
                        continue
                    found.setdefault(name, ([], values))[0].append(timing)
            _enter(report, product, found, threads)
    return report


def _enter(report: Report, product: str, found: dict[str, tuple[list[Timing], Array]], threads: int) -> None:
    """A row for each contestant, and the demand on the fastest that computes the product from the tokens."""
    best = {name: min(t.best(threads) for t in timings) for name, (timings, _) in found.items()}
    values = found["vlasov"][1]
    for name, (timings, theirs) in found.items():
        away = float(np.abs(theirs - values).max() / np.abs(values).max())
        assert away < TOLERANCE, name
        cores = max(t.cores for t in timings)
        row = (seconds(best[name]), number(best[name] / best["vlasov"]), number(cores), number(away))
        report.rows.append((f"{product} {name}", str(threads), *row, NOTES.get(name, "")))
    others = [time for name, time in best.items() if name != "vlasov" and name not in NOTES]
    if others:
        ahead = min(others) / best["vlasov"]
        report.checks.append(Check(f"{product}, {threads} threads, faster than torch.func", ahead, FASTER))


def _data() -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Tokens, Q, K, V (heads, 64, d), W (heads, d, 64), h and p; scores are about one, as in a Transformer."""
    rng, rank = np.random.default_rng(0), DIMENSION // HEADS
    x, h, p = rng.normal(size=(3, TOKENS, DIMENSION))
    Q, K, V = rng.normal(size=(3, HEADS, rank, DIMENSION)) / DIMENSION**0.5
    W = rng.normal(size=(HEADS, DIMENSION, rank)) / DIMENSION**0.5
    return x, Q / rank**0.25, K / rank**0.25, V, W, h, p


def _timed(product: str, name: str, budget: float, threads: int) -> tuple[Timing, Array]:
    """In a process of its own: the times of a contestant's product, and its values."""
    call = (_ours if name == "vlasov" else _torch)(product, name, threads)
    for _ in range(3):
        values = call()
    return repeat(call, budget=budget), np.asarray(values)


def _ours(product: str, name: str, threads: int) -> Callable[[], Any]:
    import vlasov as vl

    x, Q, K, V, W, h, p = _data()
    each = [vl.Softmax(q, k, v) for q, k, v in zip(Q, K, V, strict=True)]
    products = vl.MultiHead(each, list(W)).linearised(vl.Particles(x))
    return (lambda: products.tangent(h)) if product == "J h" else lambda: products.adjoint(p)


def _torch(product: str, name: str, threads: int) -> Callable[[], Any]:
    try:
        import torch
    except ImportError as error:
        raise Unavailable(str(error)) from None
    from torch.func import jvp, linearize, vjp

    torch.set_num_threads(threads)
    x, Q, K, V, W, h, p = _data()
    n, rank = len(x), DIMENSION // HEADS
    tokens, tangent, cotangent = map(torch.tensor, (x, h, p))
    stacked = torch.tensor(np.concatenate([matrix.reshape(-1, DIMENSION) for matrix in (Q, K, V)]))
    output = torch.tensor(np.concatenate(list(W), axis=1))

    def parts(x: Any) -> Any:
        return (x @ stacked.T).view(n, 3, HEADS, rank).permute(1, 2, 0, 3)

    def plain(x: Any) -> Any:
        q, k, v = parts(x)
        means = torch.softmax(q @ k.transpose(1, 2), -1) @ v
        return means.transpose(0, 1).reshape(n, -1) @ output.T

    def fused(x: Any) -> Any:
        q, k, v = parts(x)[:, :, None]
        means = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)[:, 0]
        return means.transpose(0, 1).reshape(n, -1) @ output.T

    calls: dict[str, Callable[[], Any]] = {
        "jvp": lambda: jvp(plain, (tokens,), (tangent,))[1],
        "vjp": lambda: vjp(plain, tokens)[1](cotangent)[0],
        "vjp of its fused attention": lambda: vjp(fused, tokens)[1](cotangent)[0],
    }
    if name == "linearize, kept":
        push = linearize(plain, tokens)[1]
        return lambda: push(tangent)
    if name == "vjp, kept":
        pull = vjp(plain, tokens)[1]
        return lambda: pull(cotangent)[0]
    return calls[name]


job(linear_cost)
TANGENTS, ADJOINTS = ("jvp", "linearize, kept"), ("vjp", "vjp of its fused attention", "vjp, kept")
_KEPT = "what all products share is kept, as ours keep it; no demand"
NOTES = {"linearize, kept": _KEPT, "vjp, kept": _KEPT}


if __name__ == "__main__":
    run("Race products with the derivative of X -> Gamma_X(X).", JOBS, PACKAGES, "few repetitions")
