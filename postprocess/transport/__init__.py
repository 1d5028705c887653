"""Optimal transport, method by method; ``postprocess.wasserstein`` chooses among them.

``line`` d = 1; ``affine`` Gaussians, and what is affine in W_2 of others; ``exact`` the network simplex between points;
``atoms`` a density against points; ``clouds`` points that stand for any measure; ``grids`` two densities on lattices,
``linear`` close ones, ``cells`` unlike ones; ``entropic`` many points. Every method returns its error, which tests hold
above the true one.

What the thresholds come from, as far as code and history tell:

| threshold                                  | from                                                                  |
|--------------------------------------------|-----------------------------------------------------------------------|
| wasserstein.FEW_PAIRS, compare._MANY       | time: 4 s of exact, half a minute of semi-discrete transport          |
| exact.MOST_PAIRS                           | memory: 320 MB of costs, and as much again inside the simplex         |
| clouds._REACH, line._REACH, affine         | arithmetic: what is lost is below rounding                            |
| grids._DOUBT, _NOISE, _NOISY, _FAINT,      | errors that cover the truth in tests/postprocess/                     |
|   _ATOMS, _NOT_SQUARE, linear._RATIO       | test_wasserstein_grids.py: Gaussians, mixtures, balls, rings, tokens  |
| grids.NODES, _LINEAR, _ENOUGH, atoms,      | experience with the same measures; no figures were kept               |
|   entropic, wasserstein.FEW_ATOMS          |                                                                       |
"""
