"""What users write must satisfy their type checker: mypy reads this file in .ci/run, nothing runs it."""

import numpy as np
import xarray as xr

import vlasov as vl

heads: list[vl.Softmax] = [vl.Softmax(A=[[1.0]], V=np.eye(1)), vl.Softmax([[1.0]], [[2]], lambda t: [[t]])]
attention = vl.MultiHead([*heads, vl.L2([[1.0]], [[1]]), vl.Linear(A=2.0)], outputs=[[[1.0]]] * 4)
others = [vl.Sigmoid(A=2.0, bias=1), vl.Exponential([[1.0]], [[2]]), vl.ReLU(A=lambda t: [[t]])]
layers = vl.Piecewise([[[1.0]], [[2.0]]], [0, 1, 2])
parts = [vl.Ball(1.0, [0.0]), vl.Box([0], [1]), vl.Ring(1, 2, 0.0), vl.Density([1.0], [[0, 1]]), vl.Particles([[0.0]])]
initial = vl.Mixture([vl.Gaussian(0.0, 1.0), *parts], [0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
problem = vl.Problem(attention, initial, 1, name="typed")
run: xr.Dataset = vl.solve(problem, "particles", n=100, times=[0.0, 1.0])
transformer: xr.Dataset = vl.solve(vl.Problem(vl.Hardmax(A=[[1.0]]), initial, 1), "layers", depth=12)
limit: xr.Dataset = vl.mean_field_study(problem, n=[16, 32], p=2, sampling=["random", "sobol"], local=True)
compared: xr.Dataset = vl.compare(run, transformer, p=2, times=[0.0, 0.5])
page: vl.Report = vl.report(run, compared, path="both.html")
slopes: xr.Dataset = vl.depth_study(problem, depths=[6, 12], n=64, p=(1, 2))
rough: xr.Dataset = vl.lipschitz_study(problem, n=[16, 32], data="adversarial", radius=2.0, times=[0.5])
gaussian: xr.Dataset = vl.gaussianity(transformer, times=3)
bound: float = vl.estimates.tokens_bound(vl.Softmax(A=[[1.0]]), 1.0, 10)
swept: xr.Dataset = vl.sweep(problem, {"attention.beta": [1.0, 2.0], "initial.mean": np.eye(2)}, solver="gaussian")
several: xr.Dataset = vl.sweep(
    "box-2d", {"horizon": range(1, 3)}, save=["mean", lambda run: run["radius"]], options={"n": 9}
)
norm: float = vl.lipschitz(vl.Softmax(A=2.0), [[0.0], [1.0]], masked=True).value
changes: xr.Dataset = vl.sensitivity(problem, times=[0.5, 1.0], n=64)
mean: np.ndarray = vl.measure(run).mean
tokens = vl.Particles([[0.0], [1.0]])
moved: np.ndarray = problem.flow().tangent(tokens, np.ones((2, 1)), t=0.5)
back: np.ndarray = attention.linearised(tokens).adjoint(moved)
velocity: np.ndarray = vl.Softmax(A=layers).velocity(vl.measure(run), [[0.0]], 0.5)
