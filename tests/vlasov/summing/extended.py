"""Sums with a kernel by their definition, in extended precision."""

import numpy as np


def value(kernel, z):
    z = np.asarray(z, np.longdouble)
    if kernel.name == "relu":
        return np.maximum(z, 0)
    return np.exp(z) if kernel.name == "exponential" else 1 / (1 + np.exp(-z - np.longdouble(kernel.bias)))


def slope(kernel, z):
    z = np.asarray(z, np.longdouble)
    if kernel.name == "relu":
        return np.heaviside(z, np.longdouble(0.5))
    k = value(kernel, z)
    return k if kernel.name == "exponential" else k * (1 - k)


def summed(points, weights, xi, kernel):
    """sum_j w_j (y_j k, k, y_j y_j^T k') at tilts xi: shapes (m, d), (m,) and (m, d, d)."""
    y, w, xi = (np.asarray(array, np.longdouble) for array in (points, weights, xi))
    first, mass, second = [], [], []
    for tilt in xi:
        z = y @ tilt
        k = w * value(kernel, z)
        first.append(k @ y)
        mass.append(k.sum())
        second.append((y * (w * slope(kernel, z))[:, None]).T @ y)
    return np.array(first), np.array(mass), np.array(second)
