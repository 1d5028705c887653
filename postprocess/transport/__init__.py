"""Optimal transport, method by method: ``methods`` lists all candidates and takes the smallest interval.

``line`` d = 1, by quantile functions in ``pieces``; ``affine`` Gaussians, and the affine part of W_2; ``exact`` the
network simplex between points; ``atoms`` a density against points; ``clouds`` points that stand for any measure,
deposited on ``lattices``; ``linear`` close densities; ``entropic`` many points; ``certain`` bounds that hold for every
pair. ``thresholds`` has the constants of the choice and of the errors, which tests hold above the true ones
(``benchmarks/distances.py`` looks for pairs where they are not).
"""
