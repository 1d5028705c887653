"""What users do that the issue's random problems do not: V that turns, odd A and V, mixed data, far means, settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from problems import Array
from trust_problems import Part, Stated

SETTINGS = ({"cells": 32}, {"frame": "fixed"}, {"frame": "fixed", "reconstruction": "upwind", "cells": 32},
            {"extent": 12.0}, {"reconstruction": "upwind"}, {"reconstruction": "weno5", "cells": 48},
            {"frame": "rescaled"}, {"cells": 64, "frame": "moving"}, {"frame": "parts"},
            {"frame": "fixed", "cells": 64}, {"frame": "parts", "cells": 32})  # fmt: skip


def twisted(problem: Stated, seed: int) -> Stated:
    """The problem with one or two twists, and in four of ten cases other settings."""
    rng = np.random.default_rng([seed, problem.index, 2])
    names = sorted(TWISTS)
    for name in rng.choice(names, size=1 + int(rng.integers(2)), replace=False).tolist():
        problem = replace(TWISTS[name](problem, rng), twists=f"{problem.twists} {name}".strip())
    options = dict(SETTINGS[rng.integers(len(SETTINGS))]) if rng.uniform() < 0.4 else {}
    if options.get("frame") == "parts" and len(problem.parts) == 1:
        options = {"cells": 32}
    return replace(problem, options=options)


def _turning(problem: Stated, rng: np.random.Generator) -> Stated:
    return replace(problem, turning=float(rng.choice([0.5, 2.0, 2 * np.pi, 20.0])))


def _weak(problem: Stated, rng: np.random.Generator) -> Stated:
    return _with(problem, lambda a: a * 10.0 ** -rng.uniform(4, 12))


def _strong(problem: Stated, rng: np.random.Generator) -> Stated:
    return _with(problem, lambda a: a * rng.uniform(3.0, 10.0))


def _negative(problem: Stated, rng: np.random.Generator) -> Stated:
    return _with(problem, lambda a: -np.linalg.norm(a, 2) * np.eye(len(a)))


def _skew(problem: Stated, rng: np.random.Generator) -> Stated:
    return _with(problem, lambda a: a - a.T if len(a) > 1 else -a)


def _thin(problem: Stated, rng: np.random.Generator) -> Stated:
    return _with(problem, _rank_one)


def _flat(problem: Stated, rng: np.random.Generator) -> Stated:
    return _with(problem, lambda a: a, _rank_one)


def _growing(problem: Stated, rng: np.random.Generator) -> Stated:
    """A and V positive: Gaussians blow up."""
    identity = np.eye(problem.dimension)
    found = _with(problem, lambda a: np.linalg.norm(a, 2) * identity, lambda v: np.linalg.norm(v, 2) * identity)
    return replace(found, horizon=5.0)


def _unlike(problem: Stated, rng: np.random.Generator) -> Stated:
    """Values of heads that differ by a factor of ten and in sign."""
    factors = [1.0, -(10.0 ** rng.uniform(-1, 0.5))]
    return replace(
        problem, heads=[head._replace(v=f * head.v) for head, f in zip(problem.heads, factors, strict=False)]
    )


def _far(problem: Stated, rng: np.random.Generator) -> Stated:
    """Means up to 100 deviations away; linear attention feels them squared."""
    size = max(_width(part) for part in problem.parts)
    way = rng.normal(size=problem.dimension)
    shift = way / np.linalg.norm(way) * size * 10.0 ** rng.uniform(1.0, 2.0)
    weaker = 1 / (1 + float(shift @ shift) / size**2) if problem.family == "linear" else 1.0
    return _with(replace(problem, parts=[moved(part, shift) for part in problem.parts]), lambda a: a * weaker)


def _mixed(problem: Stated, rng: np.random.Generator) -> Stated:
    """A Gaussian beside a box or a ring."""
    d, (_, kind, numbers) = problem.dimension, problem.parts[0]
    size = _width(problem.parts[0])
    middle = numbers[0] if kind == "gaussian" else numbers[2] if kind == "ring" else (numbers[0] + numbers[1]) / 2
    a, b = (middle + size * rng.normal(size=d) for _ in range(2))
    solid = (0.6, "box", (a - size, a + 0.5 * size)) if rng.uniform() < 0.5 else (0.6, "ring", (0.5 * size, size, a))
    return replace(problem, data="mixed", parts=[(0.4, "gaussian", (b, 0.3 * size**2 * np.eye(d))), solid])


TWISTS: dict[str, Callable[[Stated, np.random.Generator], Stated]] = {
    "turning": _turning, "weak": _weak, "strong": _strong, "negative": _negative, "skew": _skew, "thin": _thin,
    "flat": _flat, "growing": _growing, "unlike": _unlike, "far": _far, "mixed": _mixed,
}  # fmt: skip


def _with(problem: Stated, a: Callable[[Array], Array], v: Callable[[Array], Array] = lambda v: v) -> Stated:
    return replace(problem, heads=[head._replace(a=a(head.a), v=v(head.v)) for head in problem.heads])


def _rank_one(matrix: Array) -> Array:
    if len(matrix) == 1:
        return np.zeros((1, 1))
    u, s, v = np.linalg.svd(matrix)
    return s[0] * np.outer(u[:, 0], v[0])


def _width(part: Part) -> float:
    _, kind, numbers = part
    if kind == "gaussian":
        return float(np.sqrt(np.trace(numbers[1])))
    return float(np.abs(numbers[1] - numbers[0]).max() / 2) if kind == "box" else float(numbers[1])


def moved(part: Part, shift: Array) -> Part:
    """A part at another place."""
    share, kind, numbers = part
    moved: dict[str, Any] = {
        "gaussian": lambda: (numbers[0] + shift, numbers[1]),
        "box": lambda: (numbers[0] + shift, numbers[1] + shift),
        "ring": lambda: (*numbers[:2], numbers[2] + shift),
    }
    return share, kind, moved[kind]()
