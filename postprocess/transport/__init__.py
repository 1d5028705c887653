"""Optimal transport, method by method: ``methods`` lists all candidates and takes the smallest interval.

``line`` d = 1, by quantile functions in ``pieces``; ``affine`` Gaussians, and the affine part of W_2; ``radial`` round
measures; ``exact`` the network simplex between points; ``atoms`` any measure, as ``cells``, against points, of which a
cell knows the ``nearest``; ``lattices`` and ``linear`` densities, as ``clouds``; ``entropic`` many points in d > 3;
``conditional`` tokens with places in a sequence; ``certain`` bounds that hold for every pair. ``thresholds`` has the
constants of the choice and of the errors (``benchmarks/distances.py`` looks for pairs where errors are too small).
"""
