"""Seconds that a sensitivity is predicted to take, from sizes and measured constants, so that they do not vary.

seconds = (products of growth x stages of all steps + products of rates x nodes) x seconds of one J h
"""

from __future__ import annotations

import numpy as np

from vlasov.attention import Attention, Masked, MultiHead, Sinkhorn
from vlasov.checks import Array
from vlasov.measures import Particles
from vlasov.postprocess.sensitivity.path import NODES, Path
from vlasov.problem import Problem
from vlasov.solvers.ode.dop853 import STAGES
from vlasov.solvers.ode.integrate import accuracy_for

# Measured on one thread of a Zen 5 core, mean over all cases.
_GROWTH, _ROUGH, _RATES = 30.0, 6.0, 50.0  # products of Lanczos' iterations: an output time; a node in time
_CALL = 0.8e-4  # seconds of a product, however few tokens there are
_PAIR = 0.7e-9  # seconds of a pair of tokens and a head, beyond d = 2 for each two components
_LINEAR = {1: 1e-7, 2: 1e-7, 3: 9e-7}  # seconds of a token and a head at linear cost, by d
_SCALED = 40.0  # Sinkhorn attention solves a system for each product: so many products of softmax
_FEW = 24  # tokens by which steps are counted


def seconds(
    problem: Problem, cloud: Particles, tolerance: float, times: Array, *, rates: bool, rough: bool = False
) -> float:
    """Return about how long one look takes, by these tokens at this tolerance; ``rough``: growth to one digit."""
    steps, outputs = _steps(problem, cloud, tolerance, times), len(times) - 1
    stages = STAGES * max(steps, outputs) * (outputs + 1) / 2  # of products over the steps up to each time
    most = 2.0 * cloud.points.size  # products after which Lanczos' vectors span the space
    products = min(most, _ROUGH if rough else _GROWTH) * stages
    if rates:
        products += 2 * min(most, _RATES) * NODES * max(steps, outputs)
    return products * _product(problem, len(cloud))


def _product(problem: Problem, n: int) -> float:
    """Return the seconds of J h of n tokens."""
    d, attention = problem.dimension, problem.attention
    pairs = _PAIR * n * n * max(1.0, d / 2)
    if d in _LINEAR and problem.layer_norm is None and problem.block.heads_at() and not attention.causal:
        pairs = min(pairs, _LINEAR[d] * n)
    return _CALL + _heads(attention) * pairs


def _heads(attention: Attention) -> float:
    """Return the number of heads, where one of Sinkhorn attention counts as many as its product costs."""
    if isinstance(attention, Masked):
        return _heads(attention.attention)
    if isinstance(attention, MultiHead):
        return sum(_heads(head) for head in attention.heads)
    return _SCALED if isinstance(attention, Sinkhorn) else 1.0


def _steps(problem: Problem, cloud: Particles, tolerance: float, times: Array) -> int:
    """Return how many steps a few of the tokens take."""
    chosen = np.unique(np.linspace(0, len(cloud) - 1, _FEW).astype(int))
    few = Particles(cloud.points[chosen], None, None if cloud.s is None else cloud.s[chosen])
    return len(Path(few, problem.flow(tolerance=accuracy_for(tolerance)), times, 0.1 * tolerance).steps)
