"""Single linkage at one reach: points belong together where a chain of steps, none longer than the reach, joins them.

Never more than a few neighbours of each point are held. A link that these miss lies between two points whose nearest
neighbours are all within reach and all in their own group: only such points of different groups are asked again, and
only where the boxes of their groups come within reach of each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array

Labels = NDArray[np.intp]

_NEIGHBOURS = 8
_SAME = 1e-7  # of the reach: points so close count as one, so that no tree has a leaf of thousands
_ROUNDING = 1e-14


def linked(points: Array, reach: float) -> Labels:
    """The group of each point (n, d), counted from 0 in the order in which groups first appear."""
    if len(points) == 0:
        return np.zeros(0, dtype=np.intp)
    kept, place = _told_apart(points, _SAME * reach)
    groups = _grouped(kept, reach) if reach > 0 and len(kept) > 1 else np.arange(len(kept))
    return in_order(groups[place])


def in_order(labels: Labels) -> Labels:
    """The same groups, counted from 0 as they first appear."""
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.intp)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[place])


def _told_apart(points: Array, apart: float) -> tuple[Array, Labels]:
    """Points of which no two share a cell of this size, and which of them stands for each point."""
    cells = np.floor((points - points.min(axis=0)) / apart) if apart > 0 else points
    order = np.lexsort(cells.T)
    new = np.concatenate([[True], (np.diff(cells[order], axis=0) != 0).any(axis=1)])
    place = np.empty(len(points), dtype=np.intp)
    place[order] = np.cumsum(new) - 1
    return points[order[new]], place


def _grouped(points: Array, reach: float) -> Labels:
    """Groups of distinct points."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    count = min(_NEIGHBOURS, len(points) - 1) + 1  # the point itself is the first
    within = np.nextafter(reach * (1 + _ROUNDING), np.inf)
    distances, neighbours = cKDTree(points).query(points, k=count, distance_upper_bound=within)
    near = np.isfinite(distances)
    edges = np.nonzero(near)[0], neighbours[near]
    graph = coo_array((np.ones(len(edges[0]), dtype=bool), edges), shape=(len(points),) * 2)
    labels = connected_components(graph, directed=False)[1]
    open_ends = np.flatnonzero(near.all(axis=1)) if count < len(points) else np.zeros(0, dtype=np.intp)
    return _joined(points[open_ends], labels[open_ends], int(labels.max()) + 1, within)[labels]


def _joined(points: Array, labels: Labels, groups: int, within: float) -> Labels:
    """By group the one that it belongs to, once all that come within reach of each other are joined."""
    from scipy.spatial import cKDTree

    order = np.argsort(labels, kind="stable")
    names, starts = np.unique(labels[order], return_index=True)
    belongs, trees = np.arange(groups), dict[int, Any]()
    if names.size < 2:
        return belongs
    parts = np.split(points[order], starts[1:])

    def root(group: int) -> int:
        while belongs[group] != group:
            group = belongs[group]
        return group

    for a, b in _neighbours([(part.min(axis=0), part.max(axis=0)) for part in parts], within):
        few, many = (a, b) if len(parts[a]) <= len(parts[b]) else (b, a)
        one, other = root(names[few]), root(names[many])
        if one == other:
            continue
        if many not in trees:
            trees[many] = cKDTree(parts[many])
        if np.isfinite(trees[many].query(parts[few], distance_upper_bound=within)[0]).any():
            belongs[max(one, other)] = min(one, other)
    return np.array([root(group) for group in range(groups)])


def _neighbours(boxes: list[tuple[Array, Array]], within: float) -> list[tuple[int, int]]:
    """Pairs of boxes that come within reach of each other, row by row."""
    low, high = np.array([box[0] for box in boxes]), np.array([box[1] for box in boxes])
    pairs = list[tuple[int, int]]()
    for k in range(len(boxes) - 1):
        gaps = np.maximum(low[k] - high[k + 1 :], low[k + 1 :] - high[k])
        close = np.linalg.norm(np.maximum(gaps, 0.0), axis=1) <= within
        pairs += [(k, k + 1 + int(j)) for j in np.flatnonzero(close)]
    return pairs
