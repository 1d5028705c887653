"""How often the interval of a fitted slope holds the true slope: 200 small mean-field studies, a known rate, 95 %.

    .venv/bin/python benchmarks/intervals.py [STUDIES]

A Gaussian on the line under softmax attention: the coupled distance and the mean's error fall like n^{-1/2}. Beside
them made-up errors of known laws, without any dynamics, 4,000 studies each.
"""

from __future__ import annotations

import sys

import numpy as np

import vlasov as vl
from vlasov.postprocess.studies.slopes import Fit, fit_slope

SIZES, REPLICAS = [64, 128, 256], 12
LAWS = {
    "|normal|": lambda rng, shape: np.abs(rng.normal(size=shape)),
    "chi of 2": lambda rng, shape: np.linalg.norm(rng.normal(size=(*shape, 2)), axis=-1),
    "log-normal": lambda rng, shape: np.exp(rng.normal(size=shape) / 2),
}


def studied(studies: int) -> None:
    """Coverage over studies of one problem that differ in their seed."""
    problem = vl.Problem(vl.Softmax(A=[[-0.5]]), vl.Gaussian([0.0], [[1.0]]), 0.5)
    held, slopes = {"coupled": 0, "mean_error": 0}, {"coupled": 0.0, "mean_error": 0.0}
    for seed in range(studies):
        study = vl.mean_field_study(problem, n=SIZES, replicas=REPLICAS, p=2, times=[0.5], seed=seed)
        for quantity in held:
            at = study.sel(quantity=quantity).isel(time=-1, p=0, sampling=0)
            held[quantity] += bool(at["low"] <= -0.5 <= at["high"])
            slopes[quantity] += float(at["slope"]) / studies
    for quantity, count in held.items():
        print(f"{quantity:12s} {count}/{studies} = {100 * count / studies:.1f} %, mean slope {slopes[quantity]:.4f}")


def made_up(studies: int = 4000) -> None:
    """Coverage for errors that are drawn."""
    rng, tokens = np.random.default_rng(1), np.array([16, 64, 256, 1024])
    for name, law in LAWS.items():
        for replicas in (6, 12, 32):
            errors = law(rng, (studies, tokens.size, replicas)) * tokens[:, None] ** -0.5
            found = np.array([fit_slope(tokens, one, Fit()) for one in errors])
            share = np.mean((found[:, 1] <= -0.5) & (found[:, 2] >= -0.5))
            print(f"{name:12s} {replicas:3d} replicas {100 * share:.1f} %")


if __name__ == "__main__":
    made_up()
    studied(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
