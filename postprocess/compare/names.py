"""What the variables of a comparison are called."""

NAMES = {
    "wasserstein": "Wasserstein distance W_p of the two",
    "wasserstein_error": "estimated error of the distance",
    "moment_error": "largest difference of moments, in standard deviations of the first",
    "density_error": "difference of the densities in L1",
    "mean_error": "difference of the means, in standard deviations of the first",
    "covariance_error": "difference of the covariances, relative to the first",
    "growth": "W_p(t) / W_p(0), where both are above their errors",
    "bounded": "whether the estimates of the theory hold for this order",
    "radius": "largest distance from the origin in the support",
    "radius_bound": "bound of the radius by the theory",
    "amplified": "whether instability alone explains the difference",
    "log_a_posteriori": "logarithm of the a-posteriori estimate of the growth",
    "log_a_posteriori_error": "uncertainty of that logarithm, from every second output time",
    "log_a_priori": "logarithm of the a-priori bound of the growth",
    "optimal_growth": "largest growth of small differences",
    "optimal_error": "estimated error of the largest growth",
    "log_logarithmic_norm": "integral of the logarithmic norm, which bounds the growth",
    "log_norm": "integral of the norm of the derivative, which bounds the growth",
    "far": "whether the two are too far apart for small differences",
}
