"""A density, or many points, against atoms: W_p between a feasible dual and a feasible plan, from one smoothed problem.

    W_p^p = max_f  sum_i a_i f_i + int g_f dnu,    g_f(y) = min_i (|x_i - y|^p - f_i)

``cells`` stand for nu. With the minimum over i smoothed, a cell divides its mass smoothly among a few atoms, and steps
of Newton's method make every atom's share a_i: each is a linear system of n unknowns, sparse since cells know a few
atoms only. Then f bounds from below, whatever its accuracy, and the shares are a plan, which bounds from above. What
cells hide enters both: no plan inside a cell is cheaper than g_f allows, and a cut through the cell is one that exists.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.measures import Measure, Particles
from vlasov.postprocess.transport.cells import Cells, cells
from vlasov.postprocess.transport.exact import Points, solve
from vlasov.postprocess.transport.nearest import Tree, nearest, tree

_PER_ATOM, _LEAST_CELLS = 5, 8_000  # cells wanted; about 1.6 times as many are made
_NEIGHBOURS = {1: 6, 2: 8, 3: 14}  # atoms that a cell knows
_WIDEST = 0.1  # of the smoothing, relative to how the neighbours' costs spread
_SMOOTH = 0.3  # where potentials of few atoms are the start for many
_STEPS, _SHORTER = 16, 6
_BALANCED = 2e-3  # mass in the wrong place, from which on the plan is repaired by linear steps alone
_REPAIRS = 3
_APART, _FEWEST = 0.3, 200  # mass in the wrong place without potentials, above which fewer atoms are solved first
_TIGHT = 0.02  # the same where these few are themselves the start for more
_ENOUGH = 0.1  # relative distance of the bounds that fewer atoms leave, below which no more are solved
_IN_SPACE = 0.12  # the same in d = 3, where each narrower smoothing takes seconds
_GROUPS, _ROUNDING = 500, 1e-13
_TINY = 1e-150
_LIGHT = 0.3  # of the mean mass of a cell of a density: steps to lighter atoms are long
_POOR = 0.05  # of an atom's mass: with less, it is raised until a cell may choose it
_SEEN, _RIDGE = 1e-3, 0.05  # shares that enter the linear system; its least diagonal, relative to an atom's mass


class State(NamedTuple):
    """The atoms (m, k) that cells know, |x - y|^p - f there, the smoothing (m,), shares of mass (m, k), the dual."""

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
            width = relative * np.maximum(slack, max(1e-3 * np.median(slack), 1e-9 * slack.max())) + _TINY
        return self.shared(f, which, least, width)

    def stepped(self, state: State, f: Array, step: Array) -> State:
        """Return the shares for potentials ``f``, a step away from a state, among the atoms that cells know there."""
        least = state.least - step[state.which]
        order = np.argsort(least, axis=1)
        which, least = np.take_along_axis(state.which, order, axis=1), np.take_along_axis(least, order, axis=1)
        return self.shared(f, which, least, state.width)

    def shared(self, f: Array, which: NDArray[np.int64], least: Array, width: Array) -> State:
        """Return the state of cells that know the atoms ``which``, with costs ``least``."""
        shares = np.exp((least[:, :1] - least) / width[:, None])
        total = shares.sum(axis=1)
        shares *= (self.cells.weights / total)[:, None]
        value = self.atoms.weights @ f + self.cells.weights @ (least[:, 0] - width * np.log(total))
        return State(which, least, width, shares, float(value))

    def floor(self) -> float:
        """Return the lower bound of W_p that zero potentials give, for any weights of the atoms."""
        none = np.zeros(len(self.atoms.weights))
        return _dual_bound(self, none, self.state(none, _WIDEST)) ** (1 / self.p)

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
        matrix = matrix + diags_array(added + _TINY)
        found: Array = cg(matrix, right, rtol=tolerance, maxiter=400, M=diags_array(1 / matrix.diagonal()))[0]
        return found


def between(atoms: Particles, other: Measure, p: float) -> tuple[float, float]:
    """Return the middle of the bounds of W_p and half of their distance."""
    shift = float(np.linalg.norm(atoms.mean - other.mean)) if p == 2 else 0.0
    problem = posed(atoms, other, p, centred=p == 2)
    problem, moved = _without_light(problem)
    low, high, _ = bounds(problem)
    low, high = math.hypot(max(low - moved, 0.0), shift), math.hypot(high + moved, shift)
    # By how much cells are wider than the measure, as a distance.
    fine, spread = problem.cells, float(np.trace(other.covariance))
    around = fine.places - fine.weights @ fine.places
    wider = abs(float(fine.weights @ (np.square(around).sum(axis=1) + fine.variances)) - spread)
    hidden = wider / (2 * math.sqrt(spread)) if spread > 0 else math.sqrt(wider)
    return (low + high) / 2, (high - low) / 2 + hidden


def posed(atoms: Particles, other: Measure, p: float, *, centred: bool = False) -> Problem:
    """Return atoms and cells of the other measure, each about its own mean, or both about that of the atoms."""
    kept = atoms.weights > 0
    own = Points(atoms.points[kept] - atoms.mean, atoms.weights[kept] / atoms.weights[kept].sum())
    fine = cells(other, max(_LEAST_CELLS, _PER_ATOM * len(own.places)))
    origin = other.mean if centred else atoms.mean
    fine = fine._replace(places=fine.places - origin, weights=fine.weights / fine.weights.sum())
    return Problem(own, fine, tree(own.places), tree(fine.places), p)


def _without_light(problem: Problem) -> tuple[Problem, float]:
    """Return the problem with atoms far lighter than cells moved to the nearest others, and W_p of that move."""
    (x, a), p = problem.atoms, problem.p
    light = a < _LIGHT / len(problem.cells.weights)
    if not light.any() or light.all() or not problem.cells.edges.any():
        return problem, 0.0
    kept = np.flatnonzero(~light)
    near, powers = nearest(tree(x[kept]), np.zeros(kept.size), x[light], np.zeros(int(light.sum())), p, 1)
    weights = a[kept] + np.bincount(near[:, 0], a[light], minlength=kept.size)
    moved = float(a[light] @ np.maximum(powers[:, 0], 0.0)) ** (1 / p)
    return problem._replace(atoms=Points(x[kept], weights), tree=tree(x[kept])), moved


def bounds(problem: Problem, enough: float = _ENOUGH) -> tuple[float, float, Array]:
    """Return a lower and an upper bound of W_p between atoms and what cells hold, and the potentials."""
    n, d = problem.atoms.places.shape
    f, p = np.zeros(n), problem.p
    least, most = 0.0, math.inf
    if n > _FEWEST and np.abs(problem.missing(problem.state(f, _WIDEST))).sum() > 2 * _APART:
        f, most = _from_coarse(problem)
        least = _dual_bound(problem, f, problem.state(f, _WIDEST)) ** (1 / p)
        if most - least <= enough * most:
            return least, max(least, most), f
    finest = min(_WIDEST * (n / len(problem.cells.weights)) ** (1 / d), _WIDEST / 2)
    for relative in np.geomspace(_WIDEST, finest, 2 + math.ceil(math.log(_WIDEST / finest) / 3)).tolist():
        f, state = _ascended(problem, f, relative)
        if d < 3 and relative > finest:
            continue
        low = max(least, _dual_bound(problem, f, state) ** (1 / p))
        high = min(most, _plan_bound(problem, state))
        if high - low <= _IN_SPACE * high:
            break
    return low, max(low, high), f


def _from_coarse(problem: Problem) -> tuple[Array, float]:
    """Return smoothed potentials of an eighth of the atoms and cells, and an upper bound of W_p from their plan."""
    (x, a), fine, p = problem.atoms, problem.cells, problem.p
    few, which = gathered(problem.atoms, problem.tree)
    points, block = gathered(Points(fine.places, fine.weights), problem.cell_tree)
    inner = fine.variances + np.square(fine.places - points.places[block]).sum(axis=1)
    variances = np.bincount(block, fine.weights * inner) / np.bincount(block, fine.weights)
    wide = Cells(*points, np.zeros((len(variances), *fine.edges.shape[1:])), variances)
    coarse = Problem(few, wide, tree(few.places), tree(wide.places), p)
    _, high, f = bounds(coarse, _TIGHT)
    state = coarse._replace(cells=fine).state(f, _SMOOTH)
    potentials = state.least[:, 0] - state.width * np.log(fine.weights / state.shares[:, 0])
    f = nearest(problem.cell_tree, potentials, x, np.zeros(len(x)), p, 1)[1][:, 0]
    own = float(a @ np.square(x - few.places[which]).sum(axis=1) ** (p / 2)) ** (1 / p)
    return f, math.hypot(high, own) if p == 2 else high + own


def gathered(points: Points, tree: Tree) -> tuple[Points, NDArray[np.int64]]:
    """Return the centres of mass of the leaves of a tree, about an eighth as many, and the leaf of each point."""
    leaf = np.empty(len(points.weights), dtype=np.int64)
    leaves = np.repeat(np.arange(len(tree.low) // 2), 2 * len(tree.order) // len(tree.low))
    leaf[tree.order[~tree.spare]] = leaves[~tree.spare]
    _, leaf = np.unique(leaf, return_inverse=True)
    total = np.bincount(leaf, points.weights)
    places = np.stack([np.bincount(leaf, points.weights * x) for x in points.places.T], axis=1) / total[:, None]
    return Points(places, total / total.sum()), leaf


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
        if np.abs(missing).sum() < 2 * min(_BALANCED, 2e-7 * len(f)):
            break
        step, length = problem.direction(state, missing, _SEEN, _RIDGE, 1e-2), 1.0
        for _ in range(_SHORTER):
            if problem.stepped(state, f + length * step, length * step).value > state.value:
                trial = problem.state(f + length * step, relative, state.width)
                if trial.value > state.value:
                    break
            length /= 4
        else:
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
    """Return an upper bound of W_p: a plan near the shares, balanced by linear steps, and what moves the rest."""
    w = problem.cells.weights
    for _ in range(_REPAIRS):
        missing = problem.missing(state)
        if np.abs(missing).sum() < _ROUNDING:
            break
        step = problem.direction(state, missing, 1e-9, 0.0, 1e-8)[state.which]
        step -= ((state.shares * step).sum(axis=1) / w)[:, None]
        shares = state.shares * np.clip(1 + step / state.width[:, None], 1e-3, 1e3)
        trial = state._replace(shares=shares * (w / shares.sum(axis=1))[:, None])
        if not np.abs(problem.missing(trial)).sum() < np.abs(missing).sum():
            break
        state = trial
    (x, _), p, d = problem.atoms, problem.p, problem.atoms.places.shape[1]
    smear = problem.cells.variances * max((p + d - 2) / d, 1.0)
    away = problem.cells.places[:, None, :] - x[state.which]
    cost = float((state.shares * (np.square(away).sum(axis=2) + smear[:, None]) ** (p / 2)).sum())
    if p == 2:
        cost -= _spared(problem, state)
    return max(cost, 0.0) ** (1 / p) + _rest(problem, problem.missing(state))


def _rest(problem: Problem, missing: Array) -> float:
    """Return a bound of W_p between what atoms receive and what they should: within groups, and from group to group."""
    mass, p = float(np.maximum(missing, 0.0).sum()), problem.p
    if mass < _ROUNDING:
        return (mass ** (1 / p)) * float(np.linalg.norm(np.ptp(problem.atoms.places, axis=0)))
    ends, inner = [], 0.0
    for part in (np.maximum(missing, 0.0), np.maximum(-missing, 0.0)):
        kept = part > 0
        points = Points(problem.atoms.places[kept], part[kept] / part.sum())
        groups, places = points, points.places
        while len(groups.weights) > _GROUPS:
            few, leaf = gathered(groups, tree(groups.places))
            inner += float(groups.weights @ np.square(places - few.places[leaf]).sum(axis=1) ** (p / 2)) ** (1 / p)
            groups, places = few, few.places
        ends.append(groups)
    return mass ** (1 / p) * (inner + solve(ends[0], ends[1], p, again=0).value)


def _spared(problem: Problem, state: State) -> float:
    """Return what is spared where a plane across one axis of a cell parts the masses for the two largest shares."""
    which, shares = state.which, state.shares
    largest = np.argsort(-shares, axis=1)[:, :2]
    if largest.shape[1] < 2:
        return 0.0
    mass, ends = np.take_along_axis(shares, largest, axis=1), np.take_along_axis(which, largest, axis=1)
    apart = 2 * (problem.atoms.places[ends[:, 1]] - problem.atoms.places[ends[:, 0]])
    reach = np.abs(np.einsum("md,mde->me", apart, problem.cells.edges)).max(axis=1) / 2
    both = mass.sum(axis=1)
    return float((reach * mass[:, 0] * mass[:, 1] / np.where(both > 0, both, 1.0)).sum())
