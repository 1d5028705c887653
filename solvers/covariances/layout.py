"""What kernels of covariances remember of many problems, and where: slots of ``vlasov.compiled.lanes.Memory``."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from vlasov.checks import Array

ORDERS = (5, 8)
RUNNING, REACHED, BLOWN_UP, DIVERGING, STOPPED = range(5)  # what has become of a problem

# What steers the steps of a problem stands first.
TIME, NATURAL, STEP = 0, 1, 2  # t; step that the accuracy asks for; that of this attempt
RATE, STEEPEST = 3, 4  # |B|^2 at the last stage; the largest of this attempt
TARGET, END = 5, 6  # time of the next output; the horizon
BEFORE, INVERSE, EXPECTED = 7, 8, 9  # time of the step before, 1 / |B| there, the blow-up that it foresaw
LARGEST, UNIT = 10, 11  # |F|^2 from which a problem diverges; 1 / tolerance^2
STEPS, ATTEMPTS, MOST = 12, 13, 14  # so far; attempts after which it is stopped
FATE, ACTIVE = 15, 16  # what has become of the problem; 1 while rotations go on, and where a step was accepted
STATE = 17  # of n numbers: F row by row, and alpha if there are means; then that of a trial, and the rest


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
    trial, stages, last
        A state in question; velocities of all stages, from that at the beginning; and that at the end of the step.
    matrix, moved, turned, rows, heads
        B; b + B alpha; F U and U^T M of Sinkhorn; V, A and P of each head, which come last.
    """

    def __init__(self, d: int, means: bool, order: int) -> None:
        self.d, self.means, self.tableau = d, means, tableau(order)
        self.n = n = state_size(d, means)
        self.state, self.trial, self.stages = STATE, STATE + n, STATE + 2 * n
        self.last = self.stages + self.tableau.stages * n
        self.matrix = self.last + n
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
    return d * d + d * means
