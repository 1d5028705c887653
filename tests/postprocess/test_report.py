"""Reports without a browser: what is packed is what was there, what is told can be repeated, nothing is unescaped."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

import vlasov as vl
from vlasov.cases.load import load_case
from vlasov.postprocess.report import casefile, packing, sources, trust
from vlasov.postprocess.report.elements import as_json, escaped

HOSTILE = "<script>window.hacked=1</script>\"'&</title>"


@pytest.fixture(scope="module")
def plane():
    case = vl.load_case("gaussian-blow-up")
    return vl.solve(case.problem, "finite-volume", times=[0.0, 0.1, 0.2], cells=24, case=case.name, warn_above=np.inf)


@pytest.fixture(scope="module")
def gaussian():
    case = vl.load_case("gaussian-collapse")
    return vl.solve(case.problem, "gaussian", times=[0.0, 0.5, 1.0], case=case.name)


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def unpacked(text: str, planes: int) -> np.ndarray:
    """The page's own arithmetic, written again."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(planes, -1).astype(np.uint32)
    codes = sum(plane << np.uint32(8 * k) for k, plane in enumerate(raw))
    return (codes >> np.uint32(1)).astype(np.int64) * np.where(codes & 1, -1, 1) - (codes & 1)


def decoded(low: int, codes: np.ndarray, digits: int = 4) -> np.ndarray:
    """The rounded densities that a page shows."""
    span = 10 ** (digits - 1)
    exponent, rest = np.divmod(codes - 1, 9 * span)
    texts = [f"{span + m}e{low + e - digits + 1}" for m, e in zip(rest.ravel(), exponent.ravel(), strict=True)]
    return np.where(codes > 0, np.array(texts, dtype=np.float64).reshape(codes.shape), 0.0)


@pytest.mark.parametrize("digits", [3, 4])
def test_a_density_is_packed_to_the_digits_that_are_shown(digits):
    values = np.exp(np.random.default_rng(0).uniform(-30, 6, (7, 9)))
    values[0, :3] = 0.0, 1.0, 999.96
    packed = packing.pack_density(values, digits, 12)
    codes = unpacked(packed["data"], 3).reshape(values.shape)
    for axis in range(2):
        codes = np.cumsum(codes, axis=axis)
    shown = decoded(packed["low"], codes.astype(np.int32), digits)
    wanted = np.array([float(f"{v:.{digits - 1}e}") for v in values.ravel()]).reshape(values.shape)
    seen = values >= 10.0 ** packed["low"]
    assert 3 < seen.sum() < values.size
    np.testing.assert_array_equal(shown[seen], wanted[seen])
    assert not shown[~seen].any()


def test_tokens_are_packed_to_six_digits_of_the_largest():
    x = np.random.default_rng(1).normal(size=(5, 8, 3)) * np.array([1, 1, 2, 1e4, 1e-9])[:, None, None]
    packed = packing.pack_tokens(x)
    codes = unpacked(packed["data"], 4).reshape(x.shape)
    decimals = packed["decimals"]
    for k in range(1, len(x)):
        if decimals[k] == decimals[k - 1]:
            codes[k] += codes[k - 1]
    for k, here in enumerate(x):
        np.testing.assert_allclose(codes[k] * 10.0 ** -decimals[k], here, rtol=0, atol=0.51 * 10.0 ** -decimals[k])
        assert 0.5 * 10.0 ** -decimals[k] <= 5e-6 * np.abs(here).max()


def test_the_scene_holds_the_runs_own_cells(plane):
    density = data_of(vl.report(plane).html)["scenes"][0]["density"]
    codes = unpacked(density["frames"][1][0]["data"], 3).reshape(plane["density"].shape[1:])
    for axis in range(2):
        codes = np.cumsum(codes, axis=axis)
    shown = decoded(density["frames"][1][0]["low"], codes.astype(np.int32), density["digits"])
    physical = plane["density"].values[1] / abs(np.linalg.det(plane["frame_matrix"].values[1]))
    seen = shown > 0
    np.testing.assert_allclose(shown[seen], physical[seen], rtol=5.1 * 10.0 ** -density["digits"])
    assert seen.sum() > 100
    edge = density["lower"][0] + density["step"][0] / 2
    assert edge == pytest.approx(float(plane["xi"][0]))


def test_many_cells_are_joined_to_their_means(plane):
    from vlasov.postprocess.report import densities

    half = [size // 2 for size in plane["density"].shape[1:]]
    made, _ = densities.of_frames(plane, [0, 2], 2, 10**9)
    codes = np.cumsum(np.cumsum(unpacked(made["frames"][1][0]["data"], 3).reshape(half), axis=0), axis=1)
    shown = decoded(made["frames"][1][0]["low"], codes.astype(np.int32), made["digits"])
    physical = plane["density"].values[2] / abs(np.linalg.det(plane["frame_matrix"].values[2]))
    means = physical.reshape(half[0], 2, half[1], 2).mean(axis=(1, 3))
    np.testing.assert_allclose(shown[shown > 0], means[shown > 0], rtol=1e-3)
    assert made["joined"] == 2
    assert "2 × 2" in densities.rounding(made)


def test_what_does_not_compress_is_shown_at_fewer_times(plane, monkeypatch):
    from vlasov.postprocess.report import scene

    monkeypatch.setattr(scene, "_MOST_BYTES", 1500)
    values = np.random.default_rng(0).uniform(0.1, 1.0, plane["density"].shape)
    noise = plane.assign(density=(plane["density"].dims, values))
    made = scene.scene(noise, "noise")
    assert made["times"] == [0.0, 0.2]
    assert "2 of 3 output times" in scene.said_of(made)


def test_a_radius_that_is_infinite_has_no_panel_and_no_column(plane):
    """The support of a Gaussian has none."""
    bounded = vl.report(plane.assign(radius=("time", [1.0, 1.1, 1.2]))).html
    unbounded = vl.report(plane.assign(radius=("time", np.full(3, np.nan)))).html
    assert ("Radius of the support" in bounded, ">radius<" in bounded) == (True, True)
    assert ("Radius of the support" in unbounded, ">radius<" in unbounded) == (False, False)


@pytest.mark.parametrize("name", ["mixture-2d", "multi-head-mixed", "masked-two-topics", "deep-layers", "mlp-escape"])
def test_the_case_file_makes_the_problem_again(name, tmp_path, gaussian):
    case = vl.load_case(name)
    run = gaussian.assign_attrs(problem=case.problem.to_json(), case=name, title=case.title, solver="particles",
                                options='{"n": 7, "seed": null}')  # fmt: skip
    file = tmp_path / "again.toml"
    file.write_text(casefile.case_file(run), encoding="utf-8")
    again = load_case(file)
    assert again.problem == case.problem
    assert again.solvers == {"particles": {"n": 7}}
    assert again.times == [0.0, 0.5, 1.0]
    assert again.description == case.description


def test_the_command_on_the_page_repeats_the_run(gaussian, tmp_path):
    assert "vlasov run gaussian-collapse.toml --solver gaussian" in vl.report(gaussian).html
    file = tmp_path / "gaussian-collapse.toml"
    file.write_text(casefile.case_file(gaussian), encoding="utf-8")
    case = load_case(file)
    again = vl.solve(case.problem, "gaussian", times=case.times, **case.solvers["gaussian"])
    np.testing.assert_array_equal(again["covariance"], gaussian["covariance"])


def test_toml_escapes_what_texts_hold():
    import tomllib

    text = 'a "quote", a \\ and\nlines\t\x01\x7f <b> é'
    assert tomllib.loads(casefile.toml({"k": text, "odd key": {"a": [{"b": True}]}})) == {
        "k": text, "odd key": {"a": [{"b": True}]},
    }  # fmt: skip


def test_everything_of_a_file_is_escaped(gaussian):
    told = dict.fromkeys(["title", "case", "solver", "options", "advice", "citation", "method", "created"], HOSTILE)
    run = gaussian.assign_attrs(told | {"status": HOSTILE})
    run["time"].attrs["long_name"] = HOSTILE
    page = vl.report(run).html
    assert HOSTILE not in page
    assert "window.hacked=1</script>" not in page
    assert page.count("</script>") == 2  # the data's and the page's own
    assert escaped(HOSTILE) in page
    assert as_json(HOSTILE) in page


def test_nothing_turns_our_words_round(gaussian):
    assert "\u202e" not in vl.report(gaussian.assign_attrs(title="abc\u202edef")).html
    assert "202e" not in as_json({"title": "abc\u202edef"})


def test_json_holds_no_tags_and_no_numbers_that_are_none():
    assert json.loads(as_json({"a": [np.nan, np.inf, 1.5], "b": "</script>"})) == {
        "a": [None, None, 1.5],
        "b": "</script>",
    }
    assert "<" not in as_json("</script><!--")


def test_only_the_pages_own_script_may_run(gaussian):
    import hashlib

    page = vl.report(gaussian).html
    script = re.search(r"<script>(.*)</script>", page, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_a_report_shows_itself_and_saves(gaussian, tmp_path):
    made = vl.report(gaussian, path=tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == made.html
    frame = made._repr_html_()
    assert frame.startswith("<iframe")
    assert 'sandbox="allow-scripts' in frame
    inside = frame.split('srcdoc="', 1)[1]
    assert inside.count('"') == 1  # its own end
    assert repr(made) == "Report(title='Gaussian collapse')"
    with pytest.raises(AttributeError):
        made.html = ""


def test_all_kinds_have_their_page(gaussian, tmp_path):
    case = vl.load_case("interval-1d")
    line = vl.solve(case.problem, "particles", times=[0.0, 0.1, 0.2], n=64, warn_above=np.inf)
    study = vl.mean_field_study(case.problem, n=[8, 16], replicas=2, p=(1,))
    deep = vl.depth_study(case.problem, depths=[2, 4], n=8, replicas=2)
    energy, gathered, apart = vl.energies(line), vl.clusters(line), vl.compare(line, line)
    matched = vl.gaussianity(line, times=2)
    growth = vl.sensitivity(line, times=[0.1])
    datasets = {"Coupled distance": study, "number of layers": deep, "Gradient flow": energy, "Plateau": gathered}
    datasets |= {"umulant": matched, "How far solutions are apart": apart, "Growth of small changes": growth}
    for word, dataset in datasets.items():
        page = vl.report(dataset).html
        assert word in page
        assert data_of(page)["charts"]
    both = vl.report(gaussian, study, path=tmp_path / "both.html").html
    assert "Gaussian collapse" in both
    assert "Coupled distance" in both


def test_several_runs_stand_side_by_side_with_their_distances(gaussian):
    other = gaussian.assign_attrs(title="Another")
    page = vl.report(gaussian, other).html
    scenes = data_of(page)["scenes"]
    assert [one["title"] for one in scenes] == ["Gaussian collapse", "Another"]
    assert "<h2>How far the solutions are apart</h2>" in page
    assert "<h3>Solutions</h3>" in page


def test_doubt_is_told_first(gaussian):
    run = gaussian.assign_attrs(error_estimate=0.5, advice="take more tokens")
    assert "take more tokens" in trust.section(run)
    assert 'class="doubt"' in trust.section(run)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "is empty"),
        (3, "is 3 where a Dataset"),
        ("nowhere.nc", "is not a file"),
        ("", "is a folder without a finished study"),
    ],
)
def test_mistakes_are_one_sentence(given, words, tmp_path):
    with pytest.raises(vl.InputError, match=words):
        sources.opened(given if given != "" else tmp_path)


def test_unknown_datasets_and_places_are_refused(gaussian, tmp_path):
    with pytest.raises(vl.InputError, match="a report does not know"):
        vl.report(gaussian.assign_attrs(kind="soup"))
    with pytest.raises(vl.InputError, match=r"must end in \.html"):
        vl.report(gaussian, path=tmp_path / "a.pdf")
    with pytest.raises(vl.InputError, match="no output times"):
        vl.report(gaussian.isel(time=[]))


def test_the_gallery_takes_runs_that_are_there_and_makes_the_others(gaussian, tmp_path):
    from vlasov.postprocess.report.gallery import gallery
    from vlasov.solvers.dataset import save

    for name in ("gaussian-collapse", "gaussian-line"):
        (tmp_path / f"{name}.toml").write_text(_text(name))
    save(gaussian, tmp_path / "known.nc")
    lines = []
    pages = gallery(tmp_path, tmp_path / "out", say=lines.append)
    assert [page.name for page in pages] == ["index.html", "gaussian-collapse.html", "gaussian-line.html"]
    assert "known.nc" in lines[0]
    assert "no run of it" in lines[1]
    assert (tmp_path / "out" / "gaussian-line-gaussian.nc").is_file()
    assert 'href="gaussian-line.html"' in pages[0].read_text(encoding="utf-8")
    with pytest.raises(vl.InputError, match="no case files"):
        gallery(tmp_path / "out", tmp_path / "more")


def _text(name: str) -> str:
    from vlasov.cases import case_path

    return case_path(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("size", [1e-306, 1e-300, 1e300])
def test_numbers_near_the_ends_of_what_there_are_have_a_page(size):
    x = np.array([[[1.0, -1.0]], [[0.5, 0.25]]]) * size
    packed = packing.pack_tokens(x)
    codes = unpacked(packed["data"], 4).reshape(x.shape)
    if packed["decimals"][1] == packed["decimals"][0]:
        codes[1] += codes[0]
    shown = [[float(f"{code}e{-decimals}") for code in here.ravel()]
             for here, decimals in zip(codes, packed["decimals"], strict=True)]  # fmt: skip
    np.testing.assert_allclose(np.reshape(shown, x.shape), x, rtol=1e-5, atol=1e-304)
    with np.errstate(all="raise"):
        low, codes = packing.coded(np.abs(x))
    np.testing.assert_allclose(decoded(low, codes), np.abs(x), rtol=1e-3, atol=1e-303)


def test_damaged_runs_are_refused_in_one_sentence(plane, gaussian):
    line = vl.load_case("interval-1d")
    tokens = vl.solve(line.problem, "particles", times=[0.0, 0.1], n=16, warn_above=np.inf)
    damaged = {
        "tokens": [tokens.isel(particle=[]), tokens.assign(weight=np.nan * tokens["weight"])],
        "density": [plane.assign(density=0 * plane["density"]), plane.assign(density=-plane["density"])],
        "no number": [gaussian.assign_attrs({name: value}) for name in ("error_estimate", "blow_up_time")
                      for value in ("x", np.array([1.0, 2.0]))],
        "no text": [gaussian.assign_attrs({name: np.array([1, 2])}) for name in ("title", "case", "kind")],
    }  # fmt: skip
    for words, runs in damaged.items():
        for run in runs:
            with pytest.raises(vl.InputError, match=words):
                vl.report(run)
