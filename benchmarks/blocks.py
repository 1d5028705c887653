"""What LayerNorm and an MLP cost beside the velocity of softmax attention: a million tokens in the plane.

    python benchmarks/blocks.py [--n 1000000] [--threads 1] [--json blocks.json]

One velocity (tolerance 1e-10, <Ax, y> up to 20), then LN, the projection of post-norm, MLPs with two hidden units, and
velocities in a whole post-norm block; in one process, side by side, best of many, as shares of the velocity.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from timing import machine, table, versions, write_json

A = np.array([[10.0, 10.0], [-10.0, 10.0]])
W, U, B = np.array([[0.3, -0.2], [0.1, 0.4]]), np.array([[1.0, 0.2], [-0.3, 0.8]]), np.array([0.1, -0.2])
TOLERANCE, ROUNDS = 1e-10, 40


def contestants(n: int) -> dict[str, Callable[[], object]]:
    """What is timed, by name; the first is what the others are measured by."""
    import vlasov as vl
    from vlasov.blocks.block import Block
    from vlasov.blocks.layer_norm import directions
    from vlasov.flow import Flow

    x = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    cloud, out, softmax, post = vl.Particles(x), np.zeros_like(x), vl.Softmax(A=A), vl.LayerNorm()

    def velocity(law: vl.Softmax | Block) -> Callable[[], object]:
        flow = Flow(law, tolerance=TOLERANCE)
        return lambda: flow.velocity(cloud, x, 0.0, out=out)

    found: dict[str, Callable[[], object]] = {"velocity": velocity(softmax)}
    found["LN"] = lambda: directions(x, post.scale(2), out=out)
    for name in ("relu", "tanh", "gelu"):
        found[f"MLP, {name}"] = partial(vl.MLP(W, U, B, name).add, x, 0.0, out)
    found["post-norm block"] = velocity(Block(softmax, post, None))
    found["post-norm block, gelu"] = velocity(Block(softmax, post, vl.MLP(W, U, B)))
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="PATH", help="write all of it")
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    import vlasov as vl

    vl.set_threads(arguments.threads)
    here, calls = machine(), contestants(arguments.n)
    print(", ".join(f"{name} {value}" for name, value in here.items()))
    best = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):  # side by side, so that what else runs meets all of them
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - began)
    one = best["velocity"]
    over = {name: seconds / one - name.startswith("post") for name, seconds in best.items()}
    rows = [(name, f"{1e3 * best[name]:.2f} ms", f"{100 * over[name]:.1f} %") for name in calls]
    print(f"\nn = {arguments.n:,}, threads: {arguments.threads}; of blocks what they add\n")
    print(table(("", "time", "of a velocity"), rows))
    if arguments.json:
        found = {"seconds": best, "share": over, "threads": arguments.threads, "n": arguments.n}
        write_json(arguments.json, {"machine": here, "versions": versions(["numpy", "numba"]), **found})


if __name__ == "__main__":
    main()
