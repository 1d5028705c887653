"""Values that nobody expects, and where else they are put: plain data, so that what failed can be read and repeated."""

import copy
import datetime
import math
import tomllib
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from vlasov.cases import catalogue

NUMBERS = [
    *(0, 1, -1, 2, 3, 0.5, -0.25, 1e-8, 1e8, 1e-160, -1e160, 1e300, 1e308, -1e308, 5e-324, 1e-300),
    *(math.nan, math.inf, -math.inf, 2**63, -(2**63), 10**30, 10**400, -(10**400), True, False),
]
OF_TOML = [  # what a file can hold in the place of something else
    *(3, -1, 0, 2.5, 1e308, -1e-308, math.nan, math.inf, True, "abc", "", "1.5", datetime.date(2025, 1, 31)),
    *("no.npy", "no.npz:a", ".csv"),
    *([], {}, [[]], [{}], [None], [[1]], ["a"], [[["a"]]], [1.0, 2.0], [[1.0, math.nan]], [[1e308, 0], [0, 1e308]]),
    *({"kind": "gaussian"}, {"kind": 3}, {"kind": [1]}, {"kind": {}}, {"kind": "piecewise"}, [{"kind": "softmax"}]),
]
MISSING = object()  # no value at all
ODD = [
    *OF_TOML,
    *("\0", "\ud800", "é" * 300, "nan", None, 1j, b"1", Fraction(1, 3), (), set(), object, int, range(3)),
    *([[[1.0]]], [1.0, [2.0]], [[1.0, 0.0], [0.0]], [0.0, 0.0], [1e200, -1e200]),
    *([[1e-200, 0.0], [0.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]),
    *(np.eye(2) * 1j, np.eye(2, dtype=bool), np.zeros((2, 2), "datetime64[s]"), np.zeros((2, 2), "timedelta64[s]")),
    *(np.ma.masked_greater(np.eye(2), 0.5), np.ma.masked_greater([0.0, 1.0], 0.5), np.array(3.0), np.zeros((0, 2))),
    *(np.eye(2, dtype=np.float16), np.eye(2).astype(">f8"), np.eye(2, order="F"), np.ones((2, 2, 2)), np.zeros((0, 0))),
    *(np.array([[1, "a"]], dtype=object), np.zeros(2, [("a", float)]), np.longdouble("1e400"), np.array([10**400])),
    *([[math.nan, 0.0], [0.0, 1.0]], np.float64(2.5), np.int8(3), np.uint64(2**64 - 1), np.True_, np.array(["1", "2"])),
]
numbers = st.sampled_from(NUMBERS) | st.floats() | st.integers(-5, 40)
odd = (
    numbers | st.sampled_from(ODD) | st.lists(numbers, max_size=3) | st.lists(st.lists(numbers, max_size=2), max_size=2)
)
written = st.sampled_from(  # as values of --set
    [
        *("", "nan", "inf", "-1", "0", "1e-300", "1e308", "1" + 400 * "0", "true", '"a"', "[]", "{}", "[[]]", "'"),
        *("2025-01-31", "[1, 2, 3]", "[[1, 2], [3]]", 2000 * "[", '"\\u0000"', "1\nfoo=3", "{kind='piecewise'}"),
        *("[[1e200, 0], [0, 1]]", "[[true]]", "0.3", "12", "1" + 5000 * "0"),
    ]
) | st.text(max_size=6)

SIZES = [0.0, 1.0, -1.0, 0.3, -3.0, 20.0, 1e5, -1e5, 1e10, 2.0**63, 1e-10, 1e-160, 1e160, 1e300, -1e300, 1e-300]
SHAPES = ["EYE", "TURN", "LINE", "SADDLE"]
factors = st.sampled_from(SIZES) | st.floats(-2, 2)
matrices = st.tuples(factors, st.sampled_from(SHAPES))
positive = st.sampled_from([1.0, 0.3, 1e-3, 5.0, 100.0, 1e6, 1e-12, 1e-160, 1e160, 1e300, 1e-300])
KINDS = ["softmax", "l2", "linear", "sinkhorn", "sigmoid", "exponential", "relu", "masked", "mixed", "hardmax"]
physics = st.tuples(
    st.sampled_from(KINDS),
    matrices,
    matrices,
    st.sampled_from(["gaussian", "box", "ring", "mixture", "particles", "sequence"]),
    factors,  # where
    positive,  # how wide
    positive,  # for how long
    st.sampled_from(["gaussian", "particles", "finite-volume", "layers"]),
    st.sampled_from([{}, {"max_steps": 1000}]),  # as it comes, and as a user in a hurry sets it
)

SMALL = {"particles": {"n": 12}, "finite-volume": {"cells": 8}, "gaussian": {}, "layers": {"n": 12, "depth": 10}}
CASES = [name for name in catalogue.case_names() if name not in ("text-like", "ball-3d")]
PLACES = [
    *(
        "horizon",
        "title",
        "times",
        "initial",
        "initial.mean",
        "initial.covariance",
        "initial.mean.0",
        "attention.A.0.1",
    ),
    *("attention", "attention.A", "attention.V", "attention.Q", "attention.kind", "solvers", "solvers.particles"),
    *("solvers.particles.n", "solvers.particles.seed", "solvers.particles.sampling", "solvers.particles.tolerance"),
    *("solvers.finite-volume.extent", "solvers.finite-volume.frame", "solvers.gaussian.tolerance", "facts", "a.b.c"),
]


def small(tables):
    """The case with so little work that it takes no time."""
    tables = copy.deepcopy(tables)
    tables["solvers"] = {solver: SMALL[solver] for solver in tables["solvers"]}
    return tables | {"horizon": min(tables["horizon"], 1.0), "times": [0.0, 0.1]}


def places(node, path=()):
    """Paths to every value of nested tables and lists."""
    if path:
        yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(value, (*path, key))


def changed(tables, path, value):
    """The tables with another value in one place, or without it."""
    tables = inner = copy.deepcopy(tables)
    for key in path[:-1]:
        inner = inner[key]
    if value is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return tables


@st.composite
def case_tables(draw):
    """A built-in case, made small, with another value in one place or two."""
    tables = small(catalogue.read(draw(st.sampled_from(CASES))))
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(places(tables))))
        if path[0] != "solvers" or path[-1] not in ("n", "cells"):  # whose size is not for us to try
            tables = changed(tables, path, draw(odd | st.just(MISSING)))
    return tables


@st.composite
def case_texts(draw):
    """The text of a built-in case with a few characters exchanged."""
    text = catalogue.case_path(draw(st.sampled_from(CASES))).read_text()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(st.text(max_size=3)) + text[start + draw(st.integers(0, 3)) :]
    return text


settings = st.lists(st.tuples(st.sampled_from(PLACES), written).map("=".join), min_size=1, max_size=2)


@st.composite
def damaged(draw, whole):
    """Bytes that were a file: flipped, cut, doubled or replaced."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content) - 1))
        how = draw(st.sampled_from(["flip", "flip", "cut", "drop", "insert"]))
        if how == "flip":
            content[start] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            content = content[: max(start, 1)]
        elif how == "drop":
            del content[start : start + draw(st.integers(1, 64))]
            content = content or bytearray(b"x")
        else:
            content[start:start] = draw(st.binary(max_size=16))
    return bytes(content)


def readable(text):
    """Whether a text is TOML that stays small: sizes in it are not for us to try."""
    try:
        tables = small(tomllib.loads(text))
    except Exception:
        return None
    return tables
