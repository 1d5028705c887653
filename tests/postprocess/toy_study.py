"""A study in the way that CONTRIBUTING describes: how fast the velocity of n tokens at the origin approaches V m."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from vlasov.kinds import Kind
from vlasov.postprocess.registry import register
from vlasov.postprocess.studies import options as shared
from vlasov.postprocess.studies.front import front
from vlasov.postprocess.studies.show import slope_panels, slope_tables
from vlasov.postprocess.studies.slopes import Fit, with_slopes
from vlasov.postprocess.studies.study import Study


@dataclass(frozen=True, eq=False)
class OriginStudy(Study):
    """|Gamma_{mu^n}(0) - V m| against n, for tokens drawn from the initial measure mu of mean m."""

    kind: ClassVar = Kind(
        "origin study",
        "what origin_study returned",
        title="The velocity at the origin",
        variables={"error": "error of the velocity at the origin"},
        panels=slope_panels,
        tables=slope_tables,
    )

    n: int | Sequence[int] = shared.sizes_option((16, 64, 256))
    replicas: int = shared.replicas_option(8, "Random repetitions.")
    seed: int = shared.seed_option()

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        return {"n": self.n, "replica": range(self.replicas)}

    def measure(self, prepared: Any, **point: Any) -> xr.Dataset:
        seed = np.random.SeedSequence(self.seed, spawn_key=(point["n"], point["replica"]))
        law, origin = self.pde.drawn_from, np.zeros((1, self.pde.dimension))
        cloud = law.sample(point["n"], "random", seed=seed)
        here, there = (self.pde.attention.velocity(mu, origin, 0.0) for mu in (cloud, law))
        return xr.Dataset({"error": float(np.linalg.norm(here - there))})

    def finish(self, dataset: xr.Dataset, prepared: Any) -> xr.Dataset:
        return with_slopes(dataset, ["error"], "n", Fit()).assign(expected=("quantity", [-0.5]))


register(OriginStudy, "origin")
origin_study = front(OriginStudy)
