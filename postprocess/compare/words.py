"""What the variables of a comparison are, in the Dataset's own words."""

from __future__ import annotations

import xarray as xr

LONG_NAMES = {
    "wasserstein": "Wasserstein distance of order p between the two",
    "wasserstein_error": "estimated error of the distance",
    "moment_error": "distance of moments of each order, relative",
    "mean_error": "distance of the means, in standard deviations",
    "covariance_error": "distance of the covariances, relative to their norm",
    "density_error": "distance of the densities in L1",
    "growth": "W_p(t) / W_p(0)",
    "bounded": "whether log_a_posteriori and log_a_priori bound the growth of this order",
    "log_a_posteriori": "logarithm of the bound of the growth, with the radii that the solutions have",
    "log_a_priori": "logarithm of the bound of the growth, from the initial radius alone",
    "radius": "largest distance from the origin that carries mass",
    "radius_bound": "bound of the radius, from the initial one",
    "amplified": "whether they have parted only because the flow multiplies small differences of their starts",
    "optimal_growth": "largest growth of small changes along the solution, in L2",
    "optimal_error": "estimated error of that growth",
    "log_logarithmic_norm": "integral of the logarithmic norm, which bounds the logarithm of the growth",
    "log_norm": "integral of the norm of the derivative, which bounds it too",
    "far": "whether the solutions are too far apart for what holds of small changes",
    "among_gaussians": "whether the growth is that of Gaussian differences alone",
    "pair": "the solutions that are held against each other",
    "solution": "the solutions",
    "time": "time",
    "p": "order of the distance",
    "order": "order of the moments",
}


def described(comparison: xr.Dataset) -> xr.Dataset:
    """The comparison with a long name, and units where there are numbers, for each variable."""
    for name, variable in comparison.variables.items():
        units = {"units": "1"} if variable.dtype.kind in "iuf" else {}
        variable.attrs |= {"long_name": LONG_NAMES[str(name)]} | units
    return comparison
