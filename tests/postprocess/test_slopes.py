"""Slopes and their intervals: exact where the law is exact, and as often right as they say."""

import numpy as np
import pytest
import xarray as xr

from vlasov.postprocess.studies.slopes import Fit, band, fit_slope, with_slopes

DEPTHS = np.array([4, 8, 16, 32, 64])
BENT = Fit(bent=True, paired=True, line=1)
GEOMETRIC = Fit(statistic="geometric", line=3)


@pytest.mark.quick
def test_a_bent_fit_sees_through_the_next_order():
    random = np.random.default_rng(1)
    errors = (3.0 / DEPTHS * np.exp(-2.0 / DEPTHS))[:, None] * random.uniform(0.5, 2.0, 6)  # a size for each replica
    slope, low, high = fit_slope(DEPTHS, errors, BENT)
    assert slope == pytest.approx(-1.0, abs=1e-12)
    assert high - low < 1e-9
    noisy = errors * np.exp(0.01 * random.normal(size=errors.shape))
    slope, low, high = fit_slope(DEPTHS, noisy, BENT)
    assert low < -1 < high
    assert 0.001 < high - low < 0.2
    assert fit_slope(DEPTHS[:3], 3.0 / DEPTHS[:3, None], BENT)[0] == pytest.approx(-1.0, abs=1e-12)
    assert np.isnan(fit_slope(DEPTHS, np.full((5, 1), 1e-15), BENT, 1e-13)).all()
    assert np.isnan(fit_slope(DEPTHS[:2], errors[:2, :1], BENT)[1:]).all()


@pytest.mark.parametrize(
    ("fit", "law", "truth"),
    [
        # replicas that have slopes of their own; tokens drawn anew for each n; constants of heavy tails
        (
            BENT,
            lambda random: np.exp(0.02 * random.normal(size=(1, 4)) * np.log(DEPTHS)[:, None]) / DEPTHS[:, None],
            -1,
        ),
        (Fit(), lambda random: np.abs(random.normal(size=(5, 12))) / np.sqrt(DEPTHS)[:, None], -0.5),
        (GEOMETRIC, lambda random: np.exp(random.normal(size=(5, 8))) * DEPTHS[:, None] ** 0.3, 0.3),
    ],
    ids=["paired", "rms", "geometric"],
)
def test_intervals_hold_the_slope_as_often_as_they_say(fit, law, truth):
    random, held = np.random.default_rng(5), 0
    for _ in range(200):
        _, low, high = fit_slope(DEPTHS, law(random), fit)
        held += low <= truth <= high
    assert 180 <= held < 200  # of 190 expected; fewer than 180, or all, in 1e-3 of all trials


@pytest.mark.quick
def test_means_and_their_bands():
    random = np.random.default_rng(3)
    values = np.exp(random.normal(size=(1, 400)))
    geometric, errors = band(values, GEOMETRIC), band(values)
    assert geometric.mean[0] == pytest.approx(np.exp(np.log(values).mean()), rel=1e-14)
    assert np.log(geometric.high[0] / geometric.low[0]) == pytest.approx(
        2 * 1.966 * np.log(values).std(ddof=1) / 20, rel=1e-3
    )
    assert errors.mean[0] == pytest.approx(np.sqrt(np.square(values).mean()), rel=1e-14)
    assert errors.low[0] < np.exp(1) < errors.high[0]  # E e^{2 X} = e^2
    lone = band(values[:, :1])
    assert lone.low == lone.mean == lone.high


def test_slopes_of_a_dataset_are_those_of_its_arrays():
    random, n = np.random.default_rng(2), np.array([16, 64, 256])
    values = np.abs(random.normal(size=(2, 3, 5, 4))) / np.sqrt(n)[:, None, None]
    dataset = xr.Dataset(
        {"a": (("law", "n", "replica", "time"), values), "b": (("law", "n", "replica"), values[..., 0] ** 2)}, {"n": n}
    )
    found = with_slopes(dataset, ["a", "b"], "n", Fit())
    assert set(found["slope"].dims) == {"quantity", "law", "time"}
    for law in range(2):
        expected = fit_slope(n, values[law, ..., 1], Fit())
        for part, value in zip(("slope", "low", "high"), expected, strict=True):
            assert found[part].sel(quantity="a").isel(law=law, time=1) == value
        assert (
            found["slope"].sel(quantity="b").isel(law=law, time=3) == fit_slope(n, values[law, ..., 0] ** 2, Fit())[0]
        )
