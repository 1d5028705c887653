"""Tilted means by their definition, in extended precision."""

import numpy as np


def tilted(points, log_weights, x, matrix=None):
    """log Z (m,), mean (m, d) and covariance (m, d, d) of weighted points (n, d) at the tilts matrix x."""
    y, xi = np.asarray(points, np.longdouble), np.asarray(x, np.longdouble)
    if matrix is not None:
        xi = xi @ np.asarray(matrix, np.longdouble).T
    log_mass, mean, covariance = [], [], []
    for tilt in xi:
        exponents = y @ tilt if log_weights is None else y @ tilt + np.asarray(log_weights, np.longdouble)
        shift = exponents.max()
        w = np.exp(exponents - shift)
        mass = w.sum()
        log_mass.append(np.log(mass) + shift)
        mean.append(w @ y / mass)
        away = y - mean[-1]
        covariance.append((away * w[:, None]).T @ away / mass)
    return np.array(log_mass), np.array(mean), np.array(covariance)
