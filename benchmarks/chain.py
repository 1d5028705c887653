"""The chain of stability numbers for every case that has it, in order or not.

    W_2(t) / W_2(0) <= optimal growth <= exp int lambda <= exp int |J| <= a posteriori <= a priori

    python benchmarks/chain.py                        # all cases: some minutes
    python benchmarks/chain.py mixture-2d ring-2d     # some

Two starts: tokens of the case, and the same moved a little in the direction that grows most (``--along optimal``), or
all by the same shift (``--along shift``). Gaussians that stay so are moved as Gaussians too. Exit code 1 where a number
is above the next one by more than its error.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import warnings

import numpy as np
import xarray as xr

import vlasov as vl
from vlasov.postprocess.perturbations import shifted
from vlasov.postprocess.stability import written

SMALL = 1e-4  # of the deviation: how far the second start is
TOKENS = 200
TIMES, BETWEEN = 5, 16  # at which numbers are compared; output times for each of them
SLACK = 1e-3  # second order of the small change, and rates between output times


def starts(problem: vl.Problem, along: str) -> tuple[vl.Problem, vl.Problem]:
    """The problem from tokens, and from the same tokens moved."""
    cloud = problem.start
    if not isinstance(cloud, vl.Particles):
        cloud = problem.drawn_from.sample(TOKENS, "sobol")
    one = problem.changed(initial=cloud)
    size = SMALL * math.sqrt(max(float(np.trace(cloud.covariance)), 1e-6))
    if along == "shift":
        h = np.full(cloud.points.shape, 1 / math.sqrt(problem.dimension))
    else:
        h = vl.sensitivity(one, rates=False, check=False)["direction"].values[-1]
    return one, problem.changed(initial=vl.Particles(cloud.points + size * h, cloud.weights, cloud.s))


def compared(one: vl.Problem, other: vl.Problem, solver: str) -> xr.Dataset:
    """Both solved and compared with all numbers of the chain."""
    times = np.linspace(0.0, one.horizon, BETWEEN * (TIMES - 1) + 1)
    how = {"tolerance": 1e-10} if solver in ("particles", "gaussian") else {}
    runs = [vl.solve(each, solver, times=times, warn_above=math.inf, **how) for each in (one, other)]
    return vl.compare(*runs, p=2, times=TIMES, initial="different", local=True)


def chain(found: xr.Dataset) -> list[tuple[float, list[float], bool]]:
    """For each time its logarithms: measured (at least), optimal, by rates, a posteriori, a priori; and whether far."""
    rows = []
    start = found.isel(pair=0, time=0, p=0)
    for k in range(1, found.sizes["time"]):
        at = found.isel(pair=0, time=k, p=0)
        least = float(at["wasserstein"] - at["wasserstein_error"])
        first = float(start["wasserstein"] + start["wasserstein_error"])
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = [
                float(np.log(least / first)),
                float(np.log(at["optimal_growth"])),
                float(at["log_logarithmic_norm"]),
                float(at["log_norm"]),
                float(at["log_a_posteriori"]),
                float(at["log_a_priori"]),
            ]
        rows.append((float(at["time"]), numbers, bool(at["far"])))
    return rows


def ordered(numbers: list[float]) -> bool:
    """Whether those that are known increase."""
    known = [one for one in numbers if not math.isnan(one)]
    return all(a <= b + SLACK * max(1.0, abs(b)) for a, b in itertools.pairwise(known))


def report(name: str, along: str) -> bool:
    """Print the chain of a case; whether it is in order."""
    problem, fine = vl.load_case(name).problem, True
    pairs = [("particles", lambda: starts(problem, along))]
    if isinstance(problem.start, vl.Gaussian) and problem.block.affine(problem.start) is not None:
        pairs.append(("gaussian", lambda: (problem, shifted(problem, SMALL))))
    for solver, make in pairs:
        try:
            rows = chain(compared(*make(), solver))
        except (vl.InputError, vl.SolverError, np.linalg.LinAlgError) as reason:
            print(f"{name:24s} {solver:10s} {reason}", flush=True)
            continue
        for k, (t, numbers, far) in enumerate(rows, start=1):
            good = far or ordered(numbers)
            fine &= good
            if good and k < len(rows):
                continue
            texts = " <= ".join(f"{written(one):>12s}" for one in numbers)
            words = " (local)" if far else "" if good else "  NOT IN ORDER"
            print(f"{name:24s} {solver:10s} t = {t:6.3g} {texts}{words}", flush=True)
    return fine


def main() -> int:
    """Print the chains; 1 if one is not in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=[])
    parser.add_argument("--along", choices=("optimal", "shift"), default="optimal")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    titles = "measured", "optimal", "exp int lambda", "exp int |J|", "a posteriori", "a priori"
    print(f"{'case':24s} {'solver':10s} {'':10s} {' <= '.join(titles)}")
    fine = [report(name, given.along) for name in given.cases or vl.case_names()]
    print(f"{sum(fine)} of {len(fine)} cases in order")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
