"""What a run keeps of its parts: snapshots of their state, and the coordinates of their grids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlasov import messages
from vlasov.solvers.dataset import AXES
from vlasov.solvers.finite_volume.options import PARTS, Options
from vlasov.solvers.finite_volume.part import Part, mixture
from vlasov.solvers.finite_volume.slices import Slices
from vlasov.solvers.record import Record, Snapshot

_LOST = 1e-4  # of the mass: more that flows out is told
_TORN = 1e-5  # of the mass: as much that leaves the grids shows that they do not hold the parts any more


def snapshot(parts: Sequence[Part], *, several: bool) -> Snapshot:
    """The present state; of several parts in the units of the first one's grid, which is the only one that is kept."""
    measures = [part.velocity.plain(part.f, part.place) for part in parts]
    whole = mixture(parts, measures)
    kept: Snapshot = {
        "mean": whole.mean,
        "covariance": whole.covariance,
        "radius": max(part.velocity.radius(part.place) for part in parts),
        "mass": sum(part.weight * measure.mass for part, measure in zip(parts, measures, strict=True)),
    }
    if not several:
        (part,) = parts
        return kept | {
            "density": part.f.copy(),
            "frame_origin": part.place.origin,
            "frame_matrix": part.place.matrix,
        }
    units = [(part.grid.upper - part.grid.lower) / (parts[0].grid.upper - parts[0].grid.lower) for part in parts]
    shifts = [part.grid.lower - unit * parts[0].grid.lower for part, unit in zip(parts, units, strict=True)]
    return kept | {
        "density": np.array([part.f * unit.prod() for part, unit in zip(parts, units, strict=True)]),
        "frame_origin": np.array([p.place.origin + p.place.matrix @ a for p, a in zip(parts, shifts, strict=True)]),
        "frame_matrix": np.array([p.place.matrix * unit for p, unit in zip(parts, units, strict=True)]),
    }


def cause(parts: Sequence[Part]) -> str:
    """What limited the accuracy; empty if nothing did."""
    lost = sum(part.weight * part.outflow for part in parts)
    if len(parts) > 1 and lost > _TORN:
        return messages.MASS_TORN(share=lost)
    if lost > _LOST:
        return messages.MASS_LEFT(percent=100 * lost)
    return next(filter(None, (part.velocity.cause() for part in parts)), "")


def resolved(record: Record, options: Options, parts: Sequence[Part], text: Slices | None = None) -> None:
    """Note what was chosen, and the coordinates of the cells."""
    grid = parts[0].grid
    record.resolved |= {"frame": options.frame, "cells": list(grid.cells)}
    extents = [[[float(axis[0]), float(axis[-1])] for axis in part.grid.edges] for part in parts]
    if all(extent == extents[0] for extent in extents):  # else no one extent makes such grids: each was chosen
        record.resolved["extent"] = extents[0]
    for name, centers in zip(AXES, grid.centers, strict=False):
        record.constants[name] = centers
    if options.frame == PARTS:
        record.constants["part_weight"] = np.array([part.weight for part in parts])
        if text is not None:
            record.resolved["slices"] = options.slices
            record.constants["part_s"] = text.places
