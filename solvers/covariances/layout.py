"""What kernels of covariances remember of eight problems, and where: slots of ``vlasov.compiled.lanes.Memory``."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from vlasov.checks import Array

ORDERS = (5, 8)
RUNNING, REACHED, BLOWN_UP, DIVERGING, STOPPED = range(5)  # what has become of a problem

# What steers the steps of a problem stands first.
NATURAL, FORCED = 0, 1  # step that the accuracy asks for, in s; 1 where the next one is to end at the target
STEP, DIRECT = 2, 3  # of this attempt, in s, or in t where DIRECT is 1
GROWTH, RATE = 4, 5  # ds / dt at the beginning of the step; |B|^2 at its last stage
TARGET, END, FLOOR = 6, 7, 8  # time of the next output, the horizon T, 1 / T^2
BEFORE, INVERSE, EXPECTED = 9, 10, 11  # time of the step before, 1 / |B| there, the blow-up that it foresaw
LARGEST, UNIT = 12, 13  # |F|^2 from which a problem diverges; 1 / tolerance^2
STEPS, ATTEMPTS, MOST = 14, 15, 16  # so far; attempts after which it is stopped
FATE, ACTIVE = 17, 18  # what has become of the problem; 1 while Sinkhorn's rotations go on
STATE = 19  # of n numbers: F row by row, alpha if there are means, and t; then that of a trial, and the rest


class Tableau(NamedTuple):
    """Of an embedded Runge-Kutta method: stages, and one or two estimates of the error."""

    order: int
    A: Array
    B: Array
    errors: tuple[Array, ...]  # each may also use the velocity at the end of the step

    @property
    def stages(self) -> int:
        """Velocities of a step; that at its end is the first of the next one."""
        return len(self.B)


@cache
def tableau(order: int) -> Tableau:
    """Dormand and Prince's of order 5, or 8 with estimates of order 5 and 3.

    Reference: Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, sections II.4 and II.5.
    """
    from scipy.integrate import DOP853, RK45

    if order == 5:
        return Tableau(5, RK45.A, RK45.B, (RK45.E,))
    return Tableau(8, DOP853.A, DOP853.B, (DOP853.E5, DOP853.E3))


class Layout:
    """Slots, for a dimension, with means or without, and for a method.

    Attributes
    ----------
    n
        Numbers of a state.
    trial, slope, found, stages
        A state in question; velocities in t at the beginning of the step and just now; those of all stages, in s.
    matrix, moved, turned, rows, heads
        B; b + B alpha; F U and U^T M of Sinkhorn; V, A and P of each head, which come last.
    """

    def __init__(self, d: int, means: bool, order: int) -> None:
        self.d, self.means, self.tableau = d, means, tableau(order)
        self.n = n = state_size(d, means)
        self.state, self.trial, self.slope, self.found = STATE, STATE + n, STATE + 2 * n, STATE + 3 * n - 1
        self.stages = STATE + 4 * n - 2
        self.matrix = self.stages + (self.tableau.stages + 1) * n
        self.moved = self.matrix + d * d
        self.turned = self.moved + d
        self.rows = self.turned + d * d
        self.heads, self.head = self.rows + d * d, 3 * d * d


@cache
def layout(d: int, means: bool, order: int) -> Layout:
    """The one of these."""
    return Layout(d, means, order)


def state_size(d: int, means: bool) -> int:
    """n."""
    return d * d + d * means + 1
