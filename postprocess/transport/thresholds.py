"""Thresholds of the choice among methods and of the errors they tell, each with its reason.

"Pairs" are those of ``benchmarks/distances.py`` and of tests/postprocess/test_wasserstein_grids.py, whose W_p is known.
"""

# Which method is tried: time on one core.
EXACT_PAIRS = 18_000_000  # of particles; the network simplex takes 4 s
ENOUGH = 5e-5  # of the measures' size: lattices do not resolve less, so nothing is tried after such an error
LATTICE_NODES = (500, 1000, 2000)  # that carry mass, per measure: a tenth of a second to two seconds
LATTICE_MORE, LATTICE_LOOSE = 4000, 3e-3  # one more lattice, ten seconds, where the relative error is above this
LATTICE_SLOW = 1.5  # order up to which so many ways are equally long that one more lattice takes minutes
HIGHEST = 4.0  # order up to which costs on lattices are extrapolated: ball and ring, p = 10, were off by five errors
LINEAR_POINTS = {1: (1000, 2000), 2: (90, 128), 3: (18, 25)}  # along the longest axis: half a second of elimination

# What is added to errors so that they hold the truth of all pairs.
DOUBT = 0.15  # of what the extrapolation from lattices changes
NOISE = 0.02  # of a squared spacing: costs below may come from how mass fell on the lattices
NOT_SQUARE = 2  # times the error for p != 2, where costs are less smooth in the variance
JUMPS, JUMPS_SHORT = 2, 12  # times the error where a measure jumps, and the same for p < 2: no lattice resolves short
# ways. Measured on four pairs whose radial map is exact: 1.2 to 1.8 times the error at p = 2 (balls against sheared
# grids), 9 and 11 times at p = 1.5 and 1 (a ball and a Gaussian, mixed, against a Gaussian in space).
UNLIKE = 2  # times the error where the lattices of both measures differ
NOISY, FAINT = 0.2, 1e-3  # relative change, and cost in squared spacings: a linearised distance beyond may be zero
BLURRED = 4 / 3  # of what cells twice as wide change: four times what smooth densities do
BLURRED_SMOOTH = 1 / 16  # the same where a density is smooth on the line: splines of order 6 leave 1/64
STEEP = 0.5  # change of a density from cell to cell, from which on grids may hide its slope within cells
ROUNDING = 1e-13  # of sums over clouds of points, relative to their size
MASS_LOST = 1e-12  # that a grid may leave out of a measure that is averaged over its cells
