"""Optimal transport, method by method; ``postprocess.wasserstein`` chooses among them.

``methods`` names them all and chooses; ``line`` d = 1, by quantile functions in ``pieces``; ``radial`` round shapes;
``affine`` Gaussians, and what is affine in W_2 of others; ``exact`` the network simplex between points; ``atoms`` a
density against points; ``clouds`` points that stand for any measure; ``grids`` two densities, on ``lattices``, by a
``linear`` equation where they are close, in ``cells`` where they are unlike; ``monotone`` what marginals and one plan
say of them for every p, ``flow`` W_1; ``entropic`` many points; ``certain`` what holds before anything is computed.
Every method returns its error, which tests hold above the true one (``benchmarks/distances.py`` looks for pairs where
it is not).

What the thresholds come from, as far as code and history tell:

| threshold                                  | from                                                                  |
|--------------------------------------------|-----------------------------------------------------------------------|
| methods.FEW_PAIRS, compare._MANY           | time: 4 s of exact, half a minute of semi-discrete transport          |
| exact.MOST_PAIRS                           | memory: 320 MB of costs, and as much again inside the simplex         |
| clouds._REACH, line._REACH, affine         | arithmetic: what is lost is below rounding                            |
| grids, lattices: _DOUBT, _NOISE, _NOISY,   | errors that cover the truth in tests/postprocess/                     |
|   _FAINT, _ATOMS, linear._RATIO            | test_wasserstein_grids.py: Gaussians, mixtures, balls, rings, tokens  |
| monotone._SMEARED, flow._DOUBT,            | the same, and benchmarks/distances.py                                 |
|   methods._UNSEEN                          |                                                                       |
| lattices.NODES, grids._LINEAR, atoms,      | experience with the same measures; no figures were kept               |
|   entropic, methods.FEW_ATOMS              |                                                                       |
"""
