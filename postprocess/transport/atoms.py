"""A density, or many points, against atoms: W_p between a feasible dual and a feasible plan, from one smoothed problem.

    W_p^p = max_f  sum_i a_i f_i + int g_f dnu,    g_f(y) = min_i (|x_i - y|^p - f_i)

``cells`` stand for nu. With the minimum over i smoothed, a cell divides its mass smoothly among a few atoms, and Newton's
method makes every atom's share a_i: each step is a linear system of n unknowns, sparse since cells know a few atoms only.
Then f bounds from below, whatever its accuracy, and the shares are a plan, which bounds from above. What cells hide
enters both: no plan inside a cell is cheaper than g_f allows on average, and a cut through the cell is one that exists.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.measures import Measure, Particles
from vlasov.postprocess.transport.cells import Cells, cells
from vlasov.postprocess.transport.exact import Points
from vlasov.postprocess.transport.nearest import Tree, nearest, tree

_PER_ATOM, _LEAST_CELLS = 1.5, 10_000  # cells wanted; about 1.6 times as many are made
_NEIGHBOURS = {1: 6, 2: 8, 3: 14}  # atoms that a cell knows
_WIDTHS = (0.1, 0.05)  # of the smoothing, relative to how the neighbours' costs spread
_STEPS = 12
_BALANCED = 2e-3  # mass in the wrong place, from which on the plan is repaired by linear steps alone
_REPAIRS = 3
_APART = 0.3  # mass in the wrong place without potentials, above which a coarse solution is the start
_FEWEST, _SMOOTH = 200, 0.3  # atoms that begin with zero; smoothing of a coarse problem's potentials
_POOR = 0.05  # of an atom's mass: with less, it is raised until a cell may choose it
_SEEN, _RIDGE = 1e-3, 0.05  # shares that enter the linear system; its least diagonal, relative to an atom's mass


class State(NamedTuple):
    """Which atoms (m, k) each cell knows, |x - y|^p - f there, the smoothing (m,), shares of masses (m, k), the dual."""

    which: NDArray[np.int64]
    least: Array
    width: Array
    shares: Array
    value: float


class Problem(NamedTuple):
    """Atoms and cells with their trees, and the order p."""

    atoms: Points
    cells: Cells
    tree: Tree
    cell_tree: Tree
    p: float

    def state(self, f: Array, relative: float, width: Array | None = None) -> State:
        """Return the shares for potentials ``f``, smoothed by ``width``, or relative to the neighbours' costs."""
        n, d = self.atoms.places.shape
        smear = self.cells.variances * min((self.p + d - 2) / d, 1.0)
        which, least = nearest(self.tree, f, self.cells.places, smear, self.p, min(_NEIGHBOURS.get(d, 14), n))
        if width is None:
            slack = least[:, -1] - least[:, 0]
            width = relative * np.maximum(slack, 1e-3 * np.median(slack)) + np.finfo(float).tiny
        shares = np.exp((least[:, :1] - least) / width[:, None])
        total = shares.sum(axis=1)
        shares *= (self.cells.weights / total)[:, None]
        value = self.atoms.weights @ f + self.cells.weights @ (least[:, 0] - width * np.log(total))
        return State(which, least, width, shares, float(value))

    def missing(self, state: State) -> Array:
        """Return by how much each atom gets too little, (n,)."""
        received = np.bincount(state.which.ravel(), state.shares.ravel(), minlength=len(self.atoms.weights))
        return self.atoms.weights - received

    def direction(self, state: State, right: Array, seen: float, ridge: float, tolerance: float) -> Array:
        """Return h with H h = right, where H is minus the second derivative of the dual, kept above ``ridge``."""
        from scipy.sparse import csr_array, diags_array
        from scipy.sparse.linalg import cg

        w, n = self.cells.weights, len(right)
        kept = state.shares > seen * w[:, None]
        rows = np.broadcast_to(np.arange(len(w))[:, None], kept.shape)
        plan = csr_array((state.shares[kept], (rows[kept], state.which[kept])), shape=(len(w), n))
        scaled = plan.T @ diags_array(1 / state.width)
        matrix = diags_array(scaled.sum(axis=1)) - (scaled @ diags_array(1 / w)) @ plan
        diagonal = matrix.diagonal()
        size = np.bincount(state.which.ravel(), (state.shares / state.width[:, None]).ravel(), minlength=n)
        received = self.atoms.weights - self.missing(state)
        typical = np.divide(size, received, out=np.full(n, np.median(1 / state.width)), where=received > 0)
        added = np.maximum(ridge * self.atoms.weights * typical - diagonal, 0.0) + 1e-9 * diagonal
        matrix = matrix + diags_array(added + np.finfo(float).tiny)
        found: Array = cg(matrix, right, rtol=tolerance, maxiter=400, M=diags_array(1 / matrix.diagonal()))[0]
        return found


def between(atoms: Particles, other: Measure, p: float) -> tuple[float, float]:
    """Return the middle of the bounds of W_p and half of their distance."""
    origins = (atoms.mean, other.mean) if p == 2 else (atoms.mean,) * 2
    shift = float(np.linalg.norm(origins[0] - origins[1]))
    kept = atoms.weights > 0
    own = Points(atoms.points[kept] - origins[0], atoms.weights[kept])
    fine = cells(other, max(_LEAST_CELLS, round(_PER_ATOM * len(own.places))))
    fine = fine._replace(places=fine.places - origins[1], weights=fine.weights / fine.weights.sum())
    low, high = bounds(own, fine, p)
    low, high = math.hypot(low, shift), math.hypot(high, shift)
    return (low + high) / 2, (high - low) / 2


def bounds(atoms: Points, fine: Cells, p: float) -> tuple[float, float]:
    """Return a lower and an upper bound of W_p between atoms and what cells hold."""
    problem = Problem(atoms, fine, tree(atoms.places), tree(fine.places), p)
    f = _start(problem)
    for relative in _WIDTHS:
        f, state = _ascended(problem, f, relative)
    low, high = _dual_bound(problem, f, state), _plan_bound(problem, state)
    return low ** (1 / p), max(low, high) ** (1 / p)


def _start(problem: Problem) -> Array:
    """Return potentials: zero where they nearly balance, else smoothed ones of fewer atoms and cells."""
    atoms, fine, f = problem.atoms, problem.cells, np.zeros(len(problem.atoms.weights))
    if np.abs(problem.missing(problem.state(f, _WIDTHS[0]))).sum() < 2 * _APART or len(f) <= _FEWEST:
        return f
    few, points = gathered(atoms, problem.tree), gathered(Points(fine.places, fine.weights), problem.cell_tree)
    none = np.zeros(len(points.weights))
    wide = Cells(*points, np.zeros((len(none), *fine.edges.shape[1:])), none)
    coarse = Problem(few, wide, tree(few.places), tree(wide.places), problem.p)
    own, _ = _ascended(coarse, _start(coarse), _WIDTHS[0])
    state = coarse._replace(cells=fine).state(own, _SMOOTH)
    potentials = state.least[:, 0] - state.width * np.log(fine.weights / state.shares[:, 0])
    which, least = nearest(problem.cell_tree, potentials, atoms.places, np.zeros(len(f)), problem.p, 1)
    return least[:, 0]


def gathered(points: Points, tree: Tree) -> Points:
    """Return the centre of mass of the points in each leaf of a tree: about an eighth as many."""
    leaves = len(tree.low) // 2
    weights = np.where(tree.spare, 0.0, points.weights[tree.order]).reshape(leaves, -1)
    places = tree.places.reshape(*weights.shape, -1)
    total = weights.sum(axis=1)
    return Points(np.einsum("lk,lkd->ld", weights, places) / total[:, None], total / total.sum())


def _ascended(problem: Problem, f: Array, relative: float) -> tuple[Array, State]:
    """Return potentials that balance the masses at one width of the smoothing, and the state there."""
    atoms, state = problem.atoms, problem.state(f, relative)
    for _ in range(_STEPS):
        missing = problem.missing(state)
        poor = np.flatnonzero(missing > (1 - _POOR) * atoms.weights)
        if poor.size:
            none = np.zeros(poor.size)
            raised = nearest(problem.cell_tree, state.least[:, 0], atoms.places[poor], none, problem.p, 1)[1][:, 0]
            f = f.copy()
            f[poor] = np.maximum(f[poor], raised)
            state = problem.state(f, relative)
            missing = problem.missing(state)
        if np.abs(missing).sum() < 2 * _BALANCED:
            break
        step, length = problem.direction(state, missing, _SEEN, _RIDGE, 1e-2), 1.0
        for _ in range(6):
            trial = problem.state(f + length * step, relative, state.width)
            if trial.value > state.value:
                break
            length /= 4
        if trial.value <= state.value:
            break
        f, state = f + length * step, trial
    return f, state


def _dual_bound(problem: Problem, f: Array, state: State) -> float:
    """Return what ``f`` shows of W_p^p: the least cost at centroids, less what kinks inside cells may take away."""
    value = float(problem.atoms.weights @ f + problem.cells.weights @ state.least[:, 0])
    gradients = _gradients(problem, state)
    for j in range(1, state.which.shape[1]):
        slack = state.least[:, j] - state.least[:, 0]
        reach = np.abs(np.einsum("md,mde->me", gradients[:, j] - gradients[:, 0], problem.cells.edges)) / 2
        near = np.flatnonzero(reach.sum(axis=1) > slack)
        value -= float(problem.cells.weights[near] @ _excess(slack[near], reach[near]))
    return max(value, 0.0)


def _excess(slack: Array, reach: Array) -> Array:
    """Return E max(Z - slack, 0) for a sum Z of independent variables, uniform on [-reach_j, reach_j]."""
    d = reach.shape[1]
    reach = np.maximum(reach, 1e-2 * reach.max(axis=1, keepdims=True))
    total = np.zeros(len(slack))
    for signs in product((1.0, -1.0), repeat=d):
        total += math.prod(signs) * np.maximum(reach @ np.array(signs) - slack, 0.0) ** (d + 1)
    return np.maximum(total, 0.0) / (np.prod(2 * reach, axis=1) * math.factorial(d + 1))


def _gradients(problem: Problem, state: State) -> Array:
    """Return the gradients of |x_i - y|^p at the centroids, (m, k, d)."""
    away = problem.cells.places[:, None, :] - problem.atoms.places[state.which]
    if problem.p == 2:
        return 2 * away
    squares = np.square(away).sum(axis=2, keepdims=True) + problem.cells.variances[:, None, None]
    return problem.p * np.where(squares > 0, squares, 1.0) ** (problem.p / 2 - 1) * away


def _plan_bound(problem: Problem, state: State) -> float:
    """Return the cost of a plan near the shares: balanced by linear steps, what is left moved far."""
    w = problem.cells.weights
    for _ in range(_REPAIRS):
        missing = problem.missing(state)
        if np.abs(missing).sum() < 1e-12:
            break
        step = problem.direction(state, missing, 1e-9, 0.0, 1e-8)[state.which]
        step -= ((state.shares * step).sum(axis=1) / w)[:, None]
        shares = np.maximum(state.shares * (1 + step / state.width[:, None]), 0.0)
        trial = state._replace(shares=shares * (w / shares.sum(axis=1))[:, None])
        if np.abs(problem.missing(trial)).sum() > 2 * np.abs(missing).sum():
            break
        state = trial
    return _plan_cost(problem, state)


def _plan_cost(problem: Problem, state: State) -> float:
    """Return the mean of |x - y|^p in a plan: the shares, less what cuts through cells spare, and the rest moved far."""
    (x, a), w, p, d = problem.atoms, problem.cells.weights, problem.p, problem.atoms.places.shape[1]
    smear = problem.cells.variances * max((p + d - 2) / d, 1.0)
    received = a - problem.missing(state)
    shares = state.shares * np.minimum(a / np.where(received > 0, received, 1.0), 1.0)[state.which]
    away = problem.cells.places[:, None, :] - x[state.which]
    cost = float((shares * (np.square(away).sum(axis=2) + smear[:, None]) ** (p / 2)).sum())
    if p == 2:
        cost -= _spared(problem, state.which, shares)
    far = [(w - shares.sum(axis=1), np.square(problem.cells.places).sum(axis=1) + smear)]
    far.append((np.maximum(a - received, 0.0), np.square(x).sum(axis=1)))
    return cost + 2 ** (p - 1) * sum(float(np.maximum(rest, 0.0) @ squares ** (p / 2)) for rest, squares in far)


def _spared(problem: Problem, which: NDArray[np.int64], shares: Array) -> float:
    """Return what is spared where a plane across one axis of a cell parts the masses for the two largest shares."""
    largest = np.argsort(-shares, axis=1)[:, :2]
    if largest.shape[1] < 2:
        return 0.0
    mass, ends = np.take_along_axis(shares, largest, axis=1), np.take_along_axis(which, largest, axis=1)
    apart = 2 * (problem.atoms.places[ends[:, 1]] - problem.atoms.places[ends[:, 0]])
    reach = np.abs(np.einsum("md,mde->me", apart, problem.cells.edges)).max(axis=1) / 2
    both = mass.sum(axis=1)
    return float((reach * mass[:, 0] * mass[:, 1] / np.where(both > 0, both, 1.0)).sum())
