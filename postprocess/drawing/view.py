"""A dataset as a figure looks at it: which coordinates, which tokens, which times, and how far out.

Weighted clouds (sampling = "quadrature") hold nodes far out that carry no mass; what is drawn, and how wide the picture
is, follows the mass and never such nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.mesh import Mesh, mesh
from vlasov.solvers.dataset import RUN, require

Indices = NDArray[np.intp]

NEGLIGIBLE = 1e-6  # of the largest weight: lighter tokens are not drawn
FAINT = 1e-2  # of the largest weight: lighter tokens get no line of their own where there are many
_KEPT_MESHES = 16  # what a figure draws, but not a whole run
RUNAWAY = 4.0  # a run that blows up is shown until it has grown by this factor over its first half
_NEARLY = 1.2  # times as wide as most tokens are: a window may show them all


@dataclass(frozen=True)
class View:
    """A solution in the coordinates that its figures show: z = Phi^{-1} x if so wanted and it holds its Phi, else x.

    With ``directions`` (d, 2), orthonormal, in the two coordinates along them.
    """

    dataset: xr.Dataset
    rescaled: bool = False
    directions: Array | None = None
    titles: tuple[str, ...] = ()  # axis labels of the directions

    def __post_init__(self) -> None:
        require(self.dataset, RUN)
        if not self.dataset.sizes.get("time") or not {"mean", "covariance"} <= set(self.dataset.data_vars):
            raise InputError("holds no mean and covariance in time; give a Dataset that a solver returned", "dataset")
        for name in [name for name in ("mean", "covariance", "position", "density") if name in self.dataset]:
            bad = [t for t, row in zip(self.times, self.dataset[name].values, strict=True) if not checks.finite(row)]
            if bad:
                raise InputError(f"has a {name} that is not finite at t = {bad[0]:g}; keep the times before", "dataset")

    @cached_property
    def times(self) -> Array:
        return np.asarray(self.dataset["time"].values, dtype=np.float64)

    @cached_property
    def dimension(self) -> int:
        return int(self.dataset.sizes["component"]) if self.directions is None else 2

    @property
    def has_positions(self) -> bool:
        return "position" in self.dataset

    @property
    def has_density(self) -> bool:
        return "density" in self.dataset

    def mesh(self, instant: int, plane: Indices) -> Mesh:
        """The density of these components at one output time."""
        return self._mesh(instant, *(int(component) for component in plane))

    @cached_property
    def _mesh(self) -> Callable[..., Mesh]:
        dataset, rescaling = self.dataset, self._rescaling
        return lru_cache(_KEPT_MESHES)(
            lambda at, *plane: mesh(dataset, at, plane, None if rescaling is None else rescaling[at])
        )

    @property
    def blow_up_time(self) -> float:
        return float(self.dataset.attrs.get("blow_up_time", np.nan))

    @property
    def title(self) -> str:
        return str(self.dataset.attrs.get("title") or self.dataset.attrs.get("case") or "")

    @cached_property
    def _rescaling(self) -> Array | None:
        """Phi(t), shape (time, d, d), where z = Phi^{-1} x is shown."""
        held = self.rescaled and "rescaling" in self.dataset
        return np.asarray(self.dataset["rescaling"].values, dtype=np.float64) if held else None

    @cached_property
    def mean(self) -> Array:
        """Shape (time, d)."""
        mean = np.asarray(self.dataset["mean"].values, dtype=np.float64)
        mean = mean if self._rescaling is None else _solve(self._rescaling, mean[..., None])[..., 0]
        return mean if self.directions is None else mean @ self.directions

    @cached_property
    def covariance(self) -> Array:
        """Shape (time, d, d)."""
        covariance = np.asarray(self.dataset["covariance"].values, dtype=np.float64)
        if self._rescaling is not None:
            covariance = _solve(self._rescaling, _solve(self._rescaling, covariance).swapaxes(1, 2))
        return covariance if self.directions is None else self.directions.T @ covariance @ self.directions

    @cached_property
    def deviation(self) -> Array:
        """Standard deviation of every component, shape (time, d)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0))

    @cached_property
    def weights(self) -> Array:
        return np.asarray(self.dataset["weight"].values, dtype=np.float64)

    @cached_property
    def places(self) -> Array | None:
        """Of all tokens in a sequence, if they have some."""
        held = self.has_positions and "s" in self.dataset
        return np.asarray(self.dataset["s"].values, dtype=np.float64) if held else None

    @property
    def is_text(self) -> bool:
        """Whether the density has a part for each slice of a sequence, of which the sum is drawn."""
        return self.has_density and "part_s" in self.dataset

    @cached_property
    def visible(self) -> Indices:
        """The tokens that carry mass worth drawing."""
        return np.flatnonzero(self.weights >= NEGLIGIBLE * self.weights.max())

    def positions(self, tokens: Indices, times: Indices | None = None) -> Array:
        """Where these tokens are, shape (time, token, d); only what is asked for is read."""
        instants = np.arange(self.times.size) if times is None else times
        held = self.dataset["position"].isel(time=instants, particle=tokens)
        x = np.asarray(held.transpose("time", "particle", "component").values, dtype=np.float64)
        if self._rescaling is not None:
            x = _solve(self._rescaling[instants], x.swapaxes(1, 2)).swapaxes(1, 2)
        return x if self.directions is None else x @ self.directions

    def representatives(self, lines: int) -> Indices:
        """Return a few tokens that stand for the measure: quantiles on the line, else drawn by weight with one seed."""
        count = checks.integer(lines, "lines", least=1)
        strong = np.flatnonzero(self.weights >= FAINT * self.weights.max())
        candidates = self.visible if self.visible.size <= 10 else strong
        if candidates.size <= count:
            return candidates
        weights = self.weights[candidates]
        if self.dimension > 1:
            drawn = np.random.default_rng(0).choice(weights.size, count, replace=False, p=weights / weights.sum())
            return candidates[np.sort(drawn)]
        order = np.argsort(self.positions(candidates, np.array([0]))[0, :, 0], kind="stable")
        reached = np.cumsum(weights[order]) / weights.sum()
        return candidates[np.unique(order[np.searchsorted(reached, (np.arange(count) + 0.5) / count)])]

    def instants(self, wanted: int | Sequence[float]) -> Indices:
        """Indices of the output times closest to those wanted, or of so many, spread over what can be shown.

        They are spread evenly over the run, half by time and half by how far the mean and the covariance have moved, so
        that a run that comes to rest early shows how it got there.
        """
        if isinstance(wanted, int | np.integer):
            count = checks.integer(wanted, "times", least=1)
            shown = self.before_runaway()
            progress = _share(np.diff(self.times[shown])) + _share(self._steps[shown[1:] - 1])
            targets = np.linspace(0.0, progress[-1], count)
            return np.asarray(shown[np.unique(np.abs(progress[:, None] - targets).argmin(axis=0))])
        targets = checks.vector(wanted, "times")
        if not targets.size:
            raise InputError("is empty; give at least one time", "times")
        first, last = self.times[0], self.times[-1]
        slack = 1e-9 * max(last - first, abs(last))
        for target in targets:
            if not first - slack <= target <= last + slack:
                span = f"{first:.12g} to {last:.12g}"
                raise InputError(f"{target:.12g} is outside the run, which lasts from {span}", "times")
        return self.nearest(targets)

    def nearest(self, targets: Array) -> Indices:
        """Indices of the output times closest to the targets, each once."""
        return np.unique(np.abs(self.times[:, None] - targets).argmin(axis=0))

    @cached_property
    def _steps(self) -> Array:
        """How far the mean and the square root of the covariance move between outputs, shape (time - 1,)."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None]) @ vectors.swapaxes(1, 2)
        moved = np.diff(root, axis=0)
        return np.asarray(np.linalg.norm(np.diff(self.mean, axis=0), axis=1) + np.linalg.norm(moved, axis=(1, 2)))

    def window(self, time: int, plane: Indices, deviations: float) -> Array:
        """Limits (component, 2) around 99.8 % of the mass at one time; of a Gaussian solution mean +- deviations."""
        if self.has_density:
            cells = self.mesh(time, plane)
            carrying = cells.masses > NEGLIGIBLE * cells.masses.max()
            return _bulk(cells.centers[carrying], cells.masses[carrying]).T
        if self.has_positions:
            x = self.positions(self.visible, np.array([time]))[0][:, plane]
            inner, outer = _bulk(x, self.weights[self.visible])
            if x.size and (np.ptp(x, axis=0) <= _NEARLY * (outer - inner)).all():  # those at the edge are no outliers
                inner, outer = x.min(axis=0), x.max(axis=0)
            return np.stack([inner, outer], axis=1)
        center, reach = self.mean[time, plane], deviations * self.deviation[time, plane]
        return np.stack([center - reach, center + reach], axis=1)

    def before_runaway(self) -> Indices:
        """The output times to which a picture at one scale is fitted: all, but for the last ones before blow-up."""
        if not np.isfinite(self.blow_up_time):
            return np.arange(self.times.size)
        scale = np.abs(self.mean).max(axis=1) + self.deviation.max(axis=1)
        early = self.times <= (self.times[0] + self.times[-1]) / 2
        return np.flatnonzero(scale <= RUNAWAY * scale[early].max())

    @property
    def time_name(self) -> str:
        """Axis label of time."""
        return f"{self.dataset['time'].attrs.get('long_name', 'time')} $t$"

    def name(self, component: int, *, short: bool = False) -> str:
        """Axis label of one component; it says so where rescaled tokens are shown."""
        if self.titles:
            return self.titles[component]
        index = f"_{{{component + 1}}}" if self.dimension > 1 else ""
        symbol = f"x{index}" if self._rescaling is None else rf"z{index} = (\Phi^{{-1}}x){index}"
        if short:
            return f"${symbol}$"
        known = self.dataset["position"].attrs.get("long_name", "position") if self.has_positions else "position"
        return f"{known if self._rescaling is None else 'rescaled'} ${symbol}$"

    def seen(self, components: Sequence[int] | None) -> tuple[View, Indices]:
        """The view and the plane to draw: of the components asked for, else, of clouds in d > 2, principal ones."""
        if components is not None or self.dimension <= 2 or self.has_density:
            return self, self.plane((0, 1) if components is None else components)
        return self.along(*self.principal), np.array([0, 1])

    def along(self, directions: Array, titles: tuple[str, ...]) -> View:
        """The same solution in the plane of these directions."""
        return replace(self, directions=directions, titles=titles)

    @property
    def principal(self) -> tuple[Array, tuple[str, ...]]:
        """Principal directions (d, 2) of the measure at all times that can be shown together, and what to call them."""
        shown = self.before_runaway()
        mean, covariance = self.mean[shown], self.covariance[shown]
        size = max(float(np.abs(mean).max()), float(self.deviation[shown].max())) or 1.0  # squares would overflow
        away = (mean - mean.mean(axis=0)) / size
        pooled = (covariance / size / size).mean(axis=0) + away.T @ away / shown.size
        values, vectors = np.linalg.eigh(pooled)
        values, vectors = values[:-3:-1], vectors[:, :-3:-1]
        vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]])  # the same in every run
        shares = 100 * values / (np.trace(pooled) or 1.0)
        what = "PC" if self._rescaling is None else "PC of $z$:"
        return vectors, tuple(f"{what} {k} of {len(pooled)} ({share:.0f} %)" for k, share in enumerate(shares, 1))

    def plane(self, components: Sequence[int]) -> Indices:
        """Two components to draw, checked; the only one on the line."""
        if self.dimension == 1:
            return np.array([0])
        chosen = tuple(components)
        if len(chosen) != 2 or len(set(chosen) & set(range(self.dimension))) != 2:
            wanted = f"two different components between 0 and {self.dimension - 1}"
            raise InputError(f"is {chosen} but must be {wanted}", "components")
        return np.array(chosen)


def padded(limits: Array, margin: float = 0.06) -> Array:
    """Limits (..., 2) with a margin, and of some width even where all mass sits in one point."""
    span, scale = limits[..., 1] - limits[..., 0], np.abs(limits).max(axis=-1)
    point = span <= 1e-6 * scale
    spread = np.where(point, 0.0, span).max() or scale.max() or 1.0
    pad = np.where(point, 0.5 * spread, margin * span)
    return np.stack([limits[..., 0] - pad, limits[..., 1] + pad], axis=-1)


def united(windows: Array) -> Array:
    """The limits (component, 2) that hold all of (window, component, 2)."""
    return np.stack([windows[..., 0].min(axis=0), windows[..., 1].max(axis=0)], axis=-1)


def _share(steps: Array) -> Array:
    """How much of the way is behind after every step, from 0 to 1; all 0 if there is no way."""
    way = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(way / (way[-1] or 1.0))


def _solve(matrices: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrices, right), dtype=np.float64)


def _bulk(x: Array, weights: Array) -> Array:
    """Shape (2, component): the ends of intervals that leave 0.1 % of the mass on either side."""
    return np.quantile(x, [1e-3, 1 - 1e-3], axis=0, weights=weights, method="inverted_cdf")
