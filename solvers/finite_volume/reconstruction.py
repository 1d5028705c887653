"""Values on faces from cell averages, a row of faces at a time.

    cells   a   b   c | d   e   f      the face lies between c and d; the flow goes from c to d

A reconstruction is one function of these six, which a scheme names (see ``schemes``); cells that it does not use are
not read. Where the flow goes the other way it is given f, ..., a: results are symmetric to the last bit.

Rows are read and written by index: each slice of an array would be counted, which takes longer than a short row.
"""

from __future__ import annotations

from functools import cache

from vlasov.jit import kernel


@kernel()
def upwind5(a, b, c, d, e, f):  # type: ignore[no-untyped-def]
    """(2a - 13b + 47c + 27d - 3e)/60, written as the central value of order 6 less 1/60 of the fifth difference."""
    central = (a + f) - 8.0 * (b + e) + 37.0 * (c + d)
    fifth = (f - a) - 5.0 * (e - b) + 10.0 * (d - c)
    return (1.0 / 60.0) * central - (1.0 / 60.0) * fifth


@kernel()
def weno5(a, b, c, d, e, f):  # type: ignore[no-untyped-def]
    """WENO5-Z; smoothness is judged relative to the density, so that the scheme commutes with multiplication."""
    x, y, z = a - 2.0 * b + c, b - 2.0 * c + d, c - 2.0 * d + e
    u, v, w = a - 4.0 * b + 3.0 * c, b - d, 3.0 * c - 4.0 * d + e
    rough0 = 13.0 / 12.0 * x * x + 0.25 * u * u
    rough1 = 13.0 / 12.0 * y * y + 0.25 * v * v
    rough2 = 13.0 / 12.0 * z * z + 0.25 * w * w
    least = 1e-14 * (a * a + b * b + c * c + d * d + e * e) + 1e-300
    tau = abs(rough0 - rough2)
    r0, r1, r2 = tau / (rough0 + least), tau / (rough1 + least), tau / (rough2 + least)
    k0, k1, k2 = 0.1 + 0.1 * r0 * r0, 0.6 + 0.6 * r1 * r1, 0.3 + 0.3 * r2 * r2
    total = k0 * (2.0 * a - 7.0 * b + 11.0 * c) + k1 * (5.0 * c - b + 2.0 * d) + k2 * (2.0 * c + 5.0 * d - e)
    return total / (6.0 * (k0 + k1 + k2))


@kernel()
def muscl(a, b, c, d, e, f):  # type: ignore[no-untyped-def]
    """C plus half the monotonised central slope: minmod(2(c - b), 2(d - c), (d - b)/2)."""
    left, right, mean = c - b, d - c, 0.25 * (d - b)
    bound = abs(left) if abs(left) < abs(right) else abs(right)
    bound = bound if left * right > 0.0 else 0.0
    size = abs(mean) if abs(mean) < bound else bound
    return c + (size if mean > 0.0 else -size)


@kernel()
def upwind(a, b, c, d, e, f):  # type: ignore[no-untyped-def]
    """The cell that the velocity comes from."""
    return c


@cache
def face_values(face):  # type: ignore[no-untyped-def]
    """The kernel that takes ``face`` of six rows of cells, in the direction of the velocity.

    It is compiled for each ``face``: to look at a function that is handed over takes Numba as long as a small grid.
    """

    @kernel()
    def along(g, i, j, di, dj, w, row, column, out, slot):  # type: ignore[no-untyped-def]
        """The rows are g[i, j], g[i + di, j + dj], ...; w is w[row, column], and the result out[slot, 1 : -1]."""
        i1, i2, i3, i4, i5 = i + di, i + 2 * di, i + 3 * di, i + 4 * di, i + 5 * di
        j1, j2, j3, j4, j5 = j + dj, j + 2 * dj, j + 3 * dj, j + 4 * dj, j + 5 * dj
        for k in range(w.shape[2]):
            p, q, r = g[i, j, k], g[i1, j1, k], g[i2, j2, k]
            s, t, u = g[i3, j3, k], g[i4, j4, k], g[i5, j5, k]
            right = w[row, column, k] >= 0.0
            a, b, c = p if right else u, q if right else t, r if right else s
            d, e, f = s if right else r, t if right else q, u if right else p
            out[slot, k + 1] = face(a, b, c, d, e, f)

    return along


@kernel()
def interpolate(g, i, j, di, dj, out, row, column):  # type: ignore[no-untyped-def]
    """(1, -8, 37, 37, -8, 1)/60 of the six rows g[i, j], g[i + di, j + dj], ..., to out[row, column]."""
    i1, i2, i3, i4, i5 = i + di, i + 2 * di, i + 3 * di, i + 4 * di, i + 5 * di
    j1, j2, j3, j4, j5 = j + dj, j + 2 * dj, j + 3 * dj, j + 4 * dj, j + 5 * dj
    for k in range(out.shape[2]):
        outer, middle, inner = g[i, j, k] + g[i5, j5, k], g[i1, j1, k] + g[i4, j4, k], g[i2, j2, k] + g[i3, j3, k]
        out[row, column, k] = 1 / 60 * outer - 8 / 60 * middle + 37 / 60 * inner


@kernel()
def _shift(padded, near):  # type: ignore[no-untyped-def]
    """near[m, 0, k] = padded[k + m], spelt out: with a variable shift the loops do not vectorise."""
    n = near.shape[2]
    for k in range(n):
        near[0, 0, k] = padded[k]
    for k in range(n):
        near[1, 0, k] = padded[k + 1]
    for k in range(n):
        near[2, 0, k] = padded[k + 2]
    for k in range(n):
        near[3, 0, k] = padded[k + 3]
    for k in range(n):
        near[4, 0, k] = padded[k + 4]
    for k in range(n):
        near[5, 0, k] = padded[k + 5]


@kernel()
def gather(f, axis, i, j, padded, near):  # type: ignore[no-untyped-def]
    """The six rows of cells around the row (i, j) of faces normal to ``axis``, with zeros outside of the grid.

    ``padded`` has three zeros at either end of a row.
    """
    n = near.shape[2]
    if axis == 2:
        for k in range(f.shape[2]):
            padded[k + 3] = f[i, j, k]
        _shift(padded, near)
        return
    for m in range(6):
        a, b = (i + m - 3, j) if axis == 0 else (i, j + m - 3)
        inside = 0 <= a < f.shape[0] and 0 <= b < f.shape[1]
        for k in range(n):
            near[m, 0, k] = f[a, b, k] if inside else 0.0


@kernel()
def surrounded(f, axis, i, j):  # type: ignore[no-untyped-def]
    """Whether three cells lie on either side of a row of faces, in rows of their own."""
    position = i if axis == 0 else j
    return axis != 2 and 3 <= position <= f.shape[axis] - 3
