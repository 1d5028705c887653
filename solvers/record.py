"""What a solver leaves behind: snapshots at the requested times, how velocities were evaluated, how the run ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from vlasov import messages
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError, did_you_mean
from vlasov.flow import Flow
from vlasov.solvers.budget import Budget

Status = Literal["completed", "blow-up", "stopped"]
Report = Callable[[float, int], None]
Snapshot = dict[str, ArrayLike]

_LARGE = 1.0  # GB
ERRORS = ("mean_error", "covariance_error", "density_error")  # series of estimates; a solver tells those it has


@dataclass
class Record:
    """Filled by a solver while it runs."""

    times: Array  # requested output times, increasing
    report: Report  # called after each step with the time reached and the number of steps
    budget: Budget = field(default_factory=Budget)  # of steps
    keep: frozenset[str] | None = None  # variables of which snapshots are stored; all if None
    asked: frozenset[str] = frozenset()  # variables that snapshots must have
    reached: list[float] = field(default_factory=list)  # output times passed so far
    constants: Snapshot = field(default_factory=dict)  # arrays that do not depend on time
    steps: int = 0
    ends: list[float] = field(default_factory=list)  # of the steps taken
    status: Status = "stopped"
    blow_up_time: float = np.nan
    flow: Flow | None = None  # it knows how many velocities there were, how they were evaluated, how wrong they may be
    resolved: dict[str, Any] = field(default_factory=dict)  # options that the solver has chosen itself
    attributes: dict[str, float | str] = field(default_factory=dict)  # what else the solver says about the run
    _latest: tuple[float, Callable[[], Snapshot]] | None = None
    _series: dict[str, Array] = field(default_factory=dict)

    @property
    def series(self) -> dict[str, Array]:
        """What the snapshots hold, with the output times passed so far along the first axis."""
        return {name: rows[: len(self.reached)] for name, rows in self._series.items()}

    def follow(self, flow: Flow) -> Flow:
        """Note where the velocities of the run will come from."""
        self.flow, flow.patience = flow, self.budget
        return flow

    def begin(self, first: Callable[[], Snapshot]) -> None:
        """Take in the initial state."""
        self._latest = 0.0, first
        if self.asked and (missing := sorted(self.asked - (names := first().keys()))):
            raise InputError(f'"{missing[0]}" is not in runs of this solver; {did_you_mean(missing[0], names)}', "save")
        for time in self.due(0.0):
            self.add(time, first())

    def due(self, t: float) -> list[float]:
        """Requested times up to and including t that have no snapshot yet."""
        return [float(time) for time in self.times[len(self.reached) :] if time <= t]

    def add(self, time: float, snapshot: Snapshot) -> None:
        """Store the snapshot of an output time; its arrays may change afterwards."""
        for name in ("mean", "covariance"):
            if name in snapshot and not np.isfinite(snapshot[name]).all():
                raise SolverError(messages.NON_FINITE_MOMENT(name=name, time=time))
        for name, value in snapshot.items():
            if self.keep is not None and name not in self.keep:
                continue
            if name not in self._series:
                self._series[name] = self._rows(np.shape(value), np.int64 if isinstance(value, int) else np.float64)
            self._series[name][len(self.reached)] = value
        self.reached.append(time)

    def tell(self, errors: Mapping[str, ArrayLike]) -> None:
        """Estimated errors, each a number for every output time passed, by their names in ``ERRORS``."""
        for name, values in errors.items():
            self._series[name] = self._rows(())
            self._series[name][: len(self.reached)] = values

    @property
    def largest_error(self) -> float:
        """Of all estimates over time; infinity where one is not a number, or none is told."""
        told = [values for name, values in self.series.items() if name in ERRORS and values.size]
        if not told:
            return math.inf
        return float(np.nan_to_num(np.concatenate(told), nan=np.inf, posinf=np.inf).max())

    def _rows(self, shape: tuple[int, ...], kind: type = np.float64) -> Array:
        """One for each output time and one for a state that was not asked for; memory is taken as they are filled."""
        try:
            return np.empty((self.times.size + 1, *shape), dtype=kind)
        except MemoryError:
            size = 8e-9 * self.times.size * math.prod(shape)
            if size < _LARGE:  # something else has taken it
                raise
            reason = f"are {self.times.size:,} and their states would take {size:,.0f} GB; ask for fewer"
            raise InputError(reason, "times") from None

    def step(self, t: float, latest: Callable[[], Snapshot]) -> None:
        """Count an accepted step that reached t; ``latest`` makes a snapshot of it if it turns out to be the last."""
        self.steps += 1
        self.ends.append(t)
        self._latest = t, latest
        self.report(t, self.steps)
        self.budget.spend(t, self.steps)

    def end(self, status: Status, blow_up_time: float = math.nan) -> None:
        """The run is over; without any output time before the end its last state is kept."""
        self.status, self.blow_up_time = status, blow_up_time
        self.budget.end()
        if not self.reached:
            self.rescue()

    def rescue(self) -> None:
        """After a failure: keep the last good state too."""
        if self._latest is not None and self._latest[0] > (self.reached or [-np.inf])[-1]:
            with suppress(SolverError, MemoryError):  # it is not a good one
                self.add(self._latest[0], self._latest[1]())
