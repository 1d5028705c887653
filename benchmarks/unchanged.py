"""The results of one state of the code held against those of another.

    python benchmarks/unchanged.py store FOLDER            all cases with all their solvers, velocities, a study
    python benchmarks/unchanged.py compare BEFORE AFTER    max |after - before| / scale, variable by variable

The package is imported from the current folder: to judge a state of the repository, run a copy of this file there. The
exit code of ``compare`` is 1 if anything differs by more than 1e-13 of its scale, is missing or is not a number.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))

import numpy as np
import xarray as xr

import vlasov as vl

LIMIT = 1e-13
CASE = "mixture-2d"
TARGETS = 200

RENAMED = {name: f"{name}_error" for name in ("mean", "covariance", "velocity")}  # in studies, which hold errors
STATED = ("status", "blow_up_time", "method", "steps", "velocity_evaluations")
VECTORS = (
    "mean",
    "frame_origin",
    "mean_error",
    "limit_mean",
)  # may vanish by symmetry: their scale is the measure's size
ERRORS = ("reference_error", "transport_bias")  # of quantities of order one
NOTHING = np.finfo(float).tiny


def solutions() -> dict[str, xr.Dataset]:
    """The run of each case with each of its solvers."""
    results = {}
    for name in vl.case_names():
        case = vl.load_case(name)
        for solver, options in case.solvers.items():
            results[f"{name}.{solver}"] = vl.solve(case.problem, solver, times=case.times, case=name, **options)
    return results


def velocities() -> dict[str, xr.Dataset]:
    """Velocity and Jacobian of every attention at points about every measure, in one, two and three dimensions."""
    results = {}
    for d in (1, 2, 3):
        rng = np.random.default_rng(d)
        A, B = (rng.normal(size=(d, d)) / d for _ in range(2))
        normal = vl.Gaussian(np.full(d, 0.3), np.diag(0.2 + 0.1 * np.arange(d)))
        other = vl.Gaussian(np.full(d, -0.4), 0.3 * np.eye(d))
        edges = [np.linspace(-2.0, 2.0, 25 + k) for k in range(d)]
        measures: dict[str, Any] = {
            "gaussian": normal,
            "mixture": vl.Mixture([normal, other], [0.3, 0.7]),
            "ball": vl.Ball(1.0, np.full(d, 0.1)),
            "box": vl.Box(-np.ones(d), np.full(d, 0.5)),
            "ring": vl.Ring(0.5, 1.0, np.zeros(d)) if d > 1 else vl.Box([-0.5], [2.0]),
            "particles": vl.Particles(rng.normal(size=(3000, d))),
            "density": vl.Density(rng.uniform(size=[len(edge) - 1 for edge in edges]), edges),
        }
        heads = [vl.Softmax(A=A), vl.Softmax(A=B, V=A)]
        attentions: dict[str, Any] = {
            "softmax": heads[1],
            "l2": vl.L2(A, B),
            "linear": vl.Linear(A=A, V=B),
            "multi-head": vl.MultiHead(heads, [A, B]),
        }
        x = rng.normal(size=(TARGETS, d))
        for mu, measure in measures.items():
            values = {name: attention.velocity(measure, x) for name, attention in attentions.items()}
            slopes = {f"D_{name}": attention.jacobian(measure, x) for name, attention in attentions.items()}
            variables = {name: (("target", "i", "j")[: value.ndim], value) for name, value in (values | slopes).items()}
            results[f"velocity.{mu}-{d}d"] = xr.Dataset(variables)
    return results


def store(folder: Path) -> None:
    """Solve everything and write it down."""
    folder.mkdir(parents=True)
    runs = solutions()
    case = vl.load_case(CASE)
    settings = {"sampling": ["random", "sobol"], "times": [0.5, 1.0], "exact_up_to": 64, "seed": 1}
    study = vl.mean_field_study(case.problem, n=[32, 64, 128], replicas=3, **settings)
    pair = [runs[f"{CASE}.{solver}"].isel(time=[0, 50, 100]) for solver in case.solvers]
    others = {"study": study, "comparison": vl.compare(*pair)}
    for name, dataset in (runs | velocities() | others).items():
        dataset.to_netcdf(folder / f"{name}.nc", engine="h5netcdf")
    print(f"{len(list(folder.glob('*.nc')))} results in {folder}, by {vl.__file__}")


def compare(before: Path, after: Path) -> int:
    """Print the largest difference of each result and all that is over the limit; the number of findings."""
    names = sorted({path.stem for folder in (before, after) for path in folder.glob("*.nc")})
    findings, worst = 0, 0.0
    print(f"{'result':31} {'variable':22} largest difference / scale")
    for name in names:
        old, new = (_opened(folder / f"{name}.nc") for folder in (before, after))
        errors = {key: difference(old, new, key) for key in sorted(map(str, set(old.variables) | set(new.variables)))}
        largest = max(errors, key=errors.__getitem__, default="")
        for key, error in errors.items():
            if error > LIMIT or key == largest:
                print(f"{name:31} {key:22} {error:.1e}{'  OVER THE LIMIT' if error > LIMIT else ''}")
        stated = [key for key in STATED if not _same(old.attrs.get(key), new.attrs.get(key))]
        for key in stated:
            print(f"{name:31} {key:22} WAS {old.attrs.get(key)}, IS {new.attrs.get(key)}")
        findings += sum(error > LIMIT for error in errors.values()) + len(stated)
        worst = max(worst, *errors.values(), 0.0)
    print(f"{len(names)} results, largest difference {worst:.1e} of the scale, {findings} findings")
    return findings


def difference(old: xr.Dataset, new: xr.Dataset, variable: str) -> float:
    """Largest difference relative to the variable's scale; infinite if one has no such variable or another shape."""
    if variable not in old.variables or variable not in new.variables:
        return np.inf
    a, b = old[variable].values, new[variable].values
    if a.shape != b.shape:
        return np.inf
    if a.dtype.kind not in "fiu":
        return 0.0 if (a == b).all() else np.inf
    unequal = ~((a == b) | (np.isnan(a) & np.isnan(b)))  # infinities and holes are equal or not
    if not unequal.any():
        return 0.0
    error = np.abs(a - b)[unequal].max() / max(_scale(old, variable), NOTHING)
    return float(error) if np.isfinite(error) else np.inf


def _scale(dataset: xr.Dataset, variable: str) -> float:
    if variable in ERRORS:
        return 1.0
    values = np.abs(dataset[variable].values)
    largest = float(values[np.isfinite(values)].max(initial=0.0))
    sizes = [name for name in ("limit_covariance", "covariance") if name in dataset]  # a comparison has none
    if variable not in VECTORS or not sizes:
        return largest
    covariance = dataset[sizes[0]].values
    return max(largest, float(np.sqrt(np.abs(covariance).max())))


def _opened(path: Path) -> xr.Dataset:
    if not path.exists():
        return xr.Dataset()  # each variable of the other is a finding
    dataset = xr.load_dataset(path, engine="h5netcdf")
    if path.stem == "study":
        dataset = dataset.rename({old: new for old, new in RENAMED.items() if old in dataset})
        if "quantity" in dataset.coords:
            dataset["quantity"] = [RENAMED.get(str(name), str(name)) for name in dataset["quantity"].values]
    return dataset


def _same(old: Any, new: Any) -> bool:
    return bool(old == new or (old != old and new != new))  # NaN is equal to NaN here


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("store").add_argument("folder", type=Path)
    pair = commands.add_parser("compare")
    pair.add_argument("before", type=Path)
    pair.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "store":
        store(arguments.folder)
        return 0
    return int(compare(arguments.before, arguments.after) > 0)


if __name__ == "__main__":
    sys.exit(main())
