"""Every mistake is answered by one sentence that names the field, the value and the remedy."""

import numpy as np
import pytest

from vlasov.codec import decode
from vlasov.errors import InputError
from vlasov.measures import Ball, Box, Density, Gaussian, Measure, Mixture, Particles, Ring

PLANE = Gaussian([0.0, 0.0], np.eye(2))
SINGULAR = Gaussian([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]])
GRID = [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
SQUARE = Density(np.ones((2, 2)), GRID)
SLANTED = Density(np.ones((2, 2)), [[0.0, 1.0, 2.0], [0.0, 1.0, 3.0]])
XI = np.zeros((1, 2))

MISTAKES = {
    "box upside down": (lambda: Box([0, 2], [1, 2]), "upper", "entry 1 is 2 but must be larger than lower, 2"),
    "box of two lengths": (lambda: Box([0, 2], [1, 2, 3]), "upper", "has shape (3,) where (2,) is needed"),
    "box with NaN": (lambda: Box([0, float("nan")], [1, 2]), "lower", "every entry must be a finite number"),
    "ball without radius": (lambda: Ball(0.0, [0, 0]), "radius", "is 0 but must be a finite number > 0"),
    "ball with a word": (lambda: Ball("big", [0, 0]), "radius", "'big' is not a number"),
    "ball with a matrix": (lambda: Ball(1.0, np.eye(2)), "center", "has shape (2, 2) where (n,) is needed"),
    "ring inside out": (lambda: Ring(2.0, 1.0, [0, 0]), "outer", "is 1 but must be larger than inner, 2"),
    "ring with a negative hole": (lambda: Ring(-1.0, 1.0, 0.0), "inner", "is -1 but a radius must not be negative"),
    "mixture of nothing": (lambda: Mixture([]), "components", "is empty; give at least one measure"),
    "mixture of one": (lambda: Mixture(PLANE), "components", "has type Gaussian; give a list of measures"),
    "mixture of numbers": (lambda: Mixture([PLANE, 3]), "components[1]", "has type int where a measure is needed"),
    "mixture of dimensions": (
        lambda: Mixture([PLANE, Box(0, 1)]),
        "components[1]",
        "has d = 1 but components[0] has 2; make them agree",
    ),
    "too few weights": (lambda: Mixture([PLANE, PLANE], [1]), "weights", "has shape (1,) where (2,) is needed"),
    "negative weight": (
        lambda: Mixture([PLANE, PLANE], [1, -2]),
        "weights",
        "entry 1 is -2; weights must",
    ),
    "no weight": (lambda: Particles([1.0, 2.0], [0, 0]), "weights", "are all zero; at least one must be positive"),
    "no particles": (lambda: Particles(np.zeros((0, 2))), "points", "at least one particle is needed"),
    "asymmetric": (lambda: Gaussian([0, 0], [[1, 2], [0, 1]]), "covariance", "is not symmetric: entry [0, 1] is 2"),
    "indefinite": (lambda: Gaussian([0, 0], [[1, 2], [2, 1]]), "covariance", "has the negative eigenvalue -1"),
    "negative density": (
        lambda: Density([[1.0, -2.0]], [[0, 1], [0, 1, 2]]),
        "values",
        "entry [0, 1] is -2; a density must not be negative",
    ),
    "no density": (lambda: Density([0.0, 0.0], [0, 1, 2]), "values", "are all zero; at least one must be positive"),
    "density of other shape": (
        lambda: Density(np.ones((2, 3)), GRID),
        "values",
        "has shape (2, 3) where the edges make (2, 2) cells",
    ),
    "density that is a number": (lambda: Density(1.0, [0, 1]), "values", "where the edges make (1,) cells"),
    "too few axes": (
        lambda: Density(np.ones((2, 2)), [[0, 1, 2]]),
        "edges",
        "has 1 axes but d = 2; give one",
    ),
    "edges that are a number": (lambda: PLANE.on_grid(3), "edges", "is 3; give one array of edges for each axis"),
    "edges without an axis": (lambda: PLANE.on_grid(np.array(3.0)), "edges", "is array(3.); give one array of edges"),
    "edges that fall": (
        lambda: PLANE.on_grid([[0, 1, 2], [0, 1, 1]]),
        "edges[1]",
        "entry 2 is 1 after 1; edges must increase strictly",
    ),
    "one edge": (lambda: PLANE.on_grid([[0, 1, 2], [0]]), "edges[1]", "has 1 entries; one cell needs two edges"),
    "words for edges": (lambda: PLANE.on_grid([[0, 1], ["a", "b"]]), "edges[1]", "is not an array of numbers"),
    "grid elsewhere": (lambda: Box([5, 5], [6, 6]).on_grid(GRID), "edges", "hold none of the measure's mass; extend"),
    "singular on a grid": (
        lambda: SINGULAR.on_grid(GRID),
        "covariance",
        "deposit gaussian.sample(n)",
    ),
    "singular component": (
        lambda: Mixture([PLANE, SINGULAR]).on_grid(GRID),
        "components[1].covariance",
        "deposit gaussian.sample(n) instead",
    ),
    "nearly singular on a grid": (
        lambda: Gaussian([0, 0], [[1, 1], [1, 1 + 1e-13]]).on_grid([np.linspace(-9, 9, 1001)] * 2),
        "covariance",
        "is so close to singular that exact cell averages need",
    ),
    "density of a singular": (
        lambda: SINGULAR.density([[0, 0]]),
        "covariance",
        "so that there is no density",
    ),
    "density of particles": (
        lambda: Particles([1.0]).density([0.0]),
        "particles",
        "use particles.on_grid(edges)",
    ),
    "ball in d = 4": (lambda: Ball(1, np.zeros(4)).on_grid([[-1, 1]] * 4), "edges", "up to d = 3; use sample(n)"),
    "particle outside": (
        lambda: Particles([[0.7, 0.7], [1.2, 1.75]]).on_grid(GRID),
        "edges[1]",
        "has cell centres from 0.5 to 1.5 but a particle is at 1.75; extend the grid",
    ),
    "particles in one cell": (
        lambda: Particles([[0.7, 0.7]]).on_grid([[0, 1, 2], [0, 2]]),
        "edges[1]",
        "makes one cell but particles need two on each axis; refine the grid",
    ),
    "tilt on a slanted grid": (
        lambda: SLANTED.tilted(XI),
        "edges[1]",
        "needs a uniform grid; use density.on_grid",
    ),
    "singular frame": (
        lambda: Density(np.ones((2, 2)), GRID, matrix=[[1, 2], [2, 4]]),
        "matrix",
        "a frame must be invertible",
    ),
    "frame that is no square": (
        lambda: Density(np.ones((2, 2)), GRID, matrix=np.ones((2, 3))),
        "matrix",
        "has shape (2, 3) where (2, 2) is needed",
    ),
    "frame with NaN": (
        lambda: Density([1.0], [0, 1], matrix=float("nan")),
        "matrix",
        "every entry must be a finite number",
    ),
    "origin elsewhere": (
        lambda: Density(np.ones((2, 2)), GRID, origin=[1, 2, 3]),
        "origin",
        "has shape (3,) where (2,) is needed",
    ),
    "sheared density on a grid": (
        lambda: Density(np.ones((2, 2)), GRID, matrix=[[1, 1], [0, 1]]).on_grid(GRID),
        "matrix",
        "use density.sample(n).on_grid(edges)",
    ),
    "image by a row": (lambda: PLANE.image([[1.0, 2.0]], [0, 0]), "matrix", "has shape (1, 2) where (2, 2) is needed"),
    "image with a short shift": (lambda: PLANE.image(np.eye(2), [0.0]), "shift", "has shape (1,) where (2,) is needed"),
    "too many nodes": (lambda: Ball(1, np.zeros(5)).tilted(np.ones((1, 5))), "ball", "use measure.sample(n) in its pl"),
    "unknown sampling": (lambda: PLANE.sample(9, "sobel"), "sampling", 'did you mean "sobol"?'),
    "quantiles in the plane": (
        lambda: PLANE.sample(9, "quantile"),
        "sampling",
        "needs d = 1 but this",
    ),
    "complex mean": (
        lambda: Gaussian([1j, 0], np.eye(2)),
        "mean",
        "holds complex numbers where real numbers are needed",
    ),
    "complex points": (lambda: Particles(1j * np.eye(2)), "points", "holds complex numbers"),
    "dates": (lambda: Particles(np.zeros((2, 2), "datetime64[s]")), "points", "holds dates where real numbers"),
    "spans of time": (lambda: Particles(np.zeros(2, "timedelta64[s]")), "points", "holds times where real numbers"),
    "a mask": (lambda: Particles(np.ma.masked_greater(np.eye(2), 0.5)), "points", "has masked entries; fill them"),
    "masks in a list": (lambda: Particles([np.ma.masked_less([0.0, 1.0], 0.5)] * 2), "points", "has masked entries"),
    "booleans": (lambda: Particles([[True, 0.0], [0.0, 1.0]]), "points", "holds booleans where real numbers"),
    "texts": (lambda: Gaussian(["1", "2"], np.eye(2)), "mean", "['1', '2'] is not an array of numbers"),
    "nothing": (lambda: Gaussian([None], 1.0), "mean", "[None] is not an array of numbers"),
    "a huge integer": (lambda: Gaussian([10**400], 1.0), "mean", "holds an integer beyond 1.8e308"),
    "a huge radius": (lambda: Ball(10**400, [0.0]), "radius", "is inf but must be a finite number > 0"),
    "an integer without end": (lambda: PLANE.sample(10**5000), "n", "is a value of type int but must be at most"),
    "more than memory": (lambda: PLANE.sample(10**12), "n", "of which points would take 16,000 GB; ask for fewer"),
    "a seed of text": (lambda: PLANE.sample(9, seed="a"), "seed", "'a' is not a whole number"),
    "d = 0": (lambda: Gaussian([], np.zeros((0, 0))), "mean", "is empty; give at least one number"),
    "a box in d = 0": (lambda: Box([], []), "lower", "is empty; give at least one number"),
    "order of a ball": (lambda: Ball([0, 0], 1), "radius", "[0, 0] is not a number; the order is Ball(radius, center)"),
    "order of a ring": (lambda: Ring([0, 0], 2, 1), "inner", "the order is Ring(inner, outer, center)"),
    "order of a mixture": (
        lambda: Mixture([0.5, 0.5], [PLANE, PLANE]),
        "components[0]",
        "has type float where a measure is needed; the order is Mixture(components, weights)",
    ),
    "no samples": (lambda: PLANE.sample(0), "n", "is 0 but must be at least 1"),
    "points of another dimension": (
        lambda: SQUARE.density([[1, 2, 3]]),
        "x",
        "has shape (1, 3) where (n, 2)",
    ),
    "mistake in a file": (
        lambda: decode({"kind": "mixture", "components": [{"kind": "box", "lower": 0, "upper": -1}]}, Measure),
        "components[0].upper",
        "must be larger than lower, 0",
    ),
    "misspelt field in a file": (
        lambda: decode({"kind": "ring", "iner": 0, "outer": 1, "center": 0}, Measure),
        "iner",
        'did you mean "inner"?',
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize(("mistake", "field", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_named(mistake, field, words):
    with pytest.raises(InputError) as raised:
        mistake()
    assert raised.value.field == field
    assert words in raised.value.sentence
    assert not raised.value.sentence.startswith(field)
    assert "\n" not in str(raised.value)
    assert not raised.value.sentence.endswith(" ")
