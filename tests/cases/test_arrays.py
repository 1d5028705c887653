"""Arrays from files, in case files and settings: the numbers of the file, whatever becomes of the file later."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import vlasov as vl
from vlasov.cases.load import copied

TOKENS = np.array([[0.5, -1.0], [1e-300, 2.0], [1 / 3, 0.1]])
CASE = """
title = "A title"
description = "What it shows, as in notes.csv"
paper = "Where from."
horizon = 0.1
attention = { kind = "softmax", A = [[-0.3, 0.4], [0.1, -0.2]] }
initial = { kind = "particles", points = "data/tokens.npy" }
solvers = { particles = {} }
facts = [{ says = "tokens.npy", quantity = "rank", equals = 2, tolerance = 0 }]
"""


@pytest.fixture(autouse=True)
def case(tmp_path, monkeypatch):
    """A case beside its folder of data; the current folder is another one."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "tokens.npy", TOKENS)
    (tmp_path / "mine.toml").write_text(CASE)
    return tmp_path / "mine.toml"


def refused(case, *settings):
    with pytest.raises(vl.InputError) as caught:
        vl.load_case(case, settings=settings)
    assert str(case.parent) not in str(caught.value)
    return str(caught.value)


@pytest.mark.quick
def test_a_name_in_a_case_file_stands_for_numbers_which_the_run_keeps(case):
    run = vl.solve(case, times=[0.0], output="run.nc")
    shutil.rmtree(case.parent / "data")
    held = vl.open_run("run.nc")
    assert vl.solvers.problem_of(held).initial == vl.Particles(TOKENS)
    np.testing.assert_array_equal(held["position"][0], TOKENS)
    assert not any(".npy" in str(value) for value in run.attrs.values())


@pytest.mark.parametrize("name", ["new.npy", "one.npz", "two.npz:points", "plain.csv", "named.csv", '"new.npy"'])
def test_settings_name_files_in_the_current_folder(case, name):
    np.save("new.npy", TOKENS[::-1])
    np.savez("one.npz", TOKENS[::-1])
    np.savez_compressed("two.npz", other=TOKENS, points=TOKENS[::-1])
    np.savetxt("plain.csv", TOKENS[::-1], delimiter=",")
    np.savetxt("named.csv", TOKENS[::-1], delimiter=",", header="x,y", comments="")
    changed = vl.load_case(case, settings=[f"initial.points={name}"]).problem.initial
    np.testing.assert_array_equal(changed.points, TOKENS[::-1])


def test_other_arrays_of_a_case_may_be_in_files_too(case):
    np.savetxt("times.csv", [0.0, 0.05, 0.1])
    np.save("A.npy", np.array([[1, 2], [3, 4]], dtype=np.int8))
    np.save("mean.npy", np.float32([[0.5, 0.25]])[0])
    settings = ["times=times.csv", "attention.A=A.npy", "attention.beta=2", "initial.kind=gaussian"]
    with pytest.raises(vl.InputError, match=r"initial\.points: is not a field of gaussian"):
        vl.load_case(case, settings=settings)
    settings[-1] = 'initial={kind="gaussian", mean="mean.npy", covariance=[[1, 0], [0, 1]]}'
    loaded = vl.load_case(case, settings=settings)
    assert loaded.times == [0.0, 0.05, 0.1]
    assert loaded.problem.initial.mean.tolist() == [0.5, 0.25]
    np.testing.assert_array_equal(loaded.problem.attention.A, [[2, 4], [6, 8]])


def test_a_histogram_is_a_density(case):
    x = np.random.default_rng(0).normal(size=(500, 2)) @ [[1.0, 0.5], [0.0, 0.4]]
    counts, (first, second) = np.histogramdd(x, bins=(7, 9), density=True)
    np.savez("rho.npz", values=counts, first=first, second=second)
    table = '{kind="density", values="rho.npz:values", edges=["rho.npz:first", "rho.npz:second"]}'
    initial = vl.load_case(case, settings=[f"initial={table}"]).problem.initial
    assert initial.mass == pytest.approx(1.0, abs=1e-12)
    centres = [(edges[:-1] + edges[1:]) / 2 for edges in (first, second)]
    shares = counts * np.outer(np.diff(first), np.diff(second))
    np.testing.assert_allclose(initial.mean, [centres[0] @ shares.sum(1), shares.sum(0) @ centres[1]], atol=1e-12)


def test_a_copy_elsewhere_finds_the_files(case):
    text = copied(case, "..")
    assert text.endswith(CASE)
    Path("copy.toml").write_text(copied(case, "."))
    assert 'points = "../data/tokens.npy"' in Path("copy.toml").read_text()
    loaded = vl.load_case("copy.toml")
    assert loaded.problem == vl.load_case(case).problem
    assert [fact.says for fact in loaded.facts] == ["tokens.npy"]
    np.save("../data/tokens.npy", TOKENS[:2])  # facts are stated for other numbers
    assert vl.load_case("copy.toml").outdated


def test_a_sweep_over_files_has_their_numbers(case, vlasov):
    np.save("b.npy", 0.0 * np.eye(2))
    np.save("c.npy", 0.1 * np.eye(2))
    case.write_text(CASE.replace("[[-0.3, 0.4], [0.1, -0.2]]", '"elsewhere/c.npy"'))
    code, _, err = vlasov("sweep", str(case), "--set", "attention.V=b.npy,c.npy", "-o", "sweep.nc")
    assert (code, err) == (0, "")
    means = vl.open_run("sweep.nc")["mean"].values
    np.testing.assert_allclose(means[0], np.broadcast_to(TOKENS.mean(axis=0), means[0].shape), atol=1e-15)
    assert abs(means[1, -1] - TOKENS.mean(axis=0)).max() > 1e-6


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none.npy", 'is "none.npy", which is no file in the folder of the case, or for a setting in the current one'),
        ("two.npz", '"two.npz" has 2 arrays (a, b); name one of them, as in "two.npz:a"'),
        ("two.npz:c", '"two.npz:c" has no array "c"; choose one of: a, b.'),
        ("nan.npy", '"nan.npy": entry [1, 0] is nan; every entry must be a finite number'),
        ("object.npy", '"object.npy" cannot be read as .npy (no array of numbers, or damaged); write it again'),
        ("truth.npy", '"truth.npy": holds booleans where real numbers are needed'),
        ("text.npy", '"text.npy": array'),
        ("cut.npy", '"cut.npy" cannot be read as .npy'),
        ("cut.npz", '"cut.npz" cannot be read as .npz'),
        ("huge.npy", '"huge.npy" cannot be read as .npy'),
        ("words.csv", "\"words.csv\" cannot be read as .csv (could not convert string 'b'"),
        ("empty.csv", '"empty.csv" cannot be read as .csv (no rows of numbers)'),
        ("uneven.csv", '"uneven.csv" cannot be read as .csv (the number of columns changed'),
        ("cube.npy", "has shape (2, 2, 2) where (n, m) is needed"),
        ("\0.npy", 'is "\0.npy", which is no file'),
    ],
)
def test_what_is_no_array_of_numbers(case, name, sentence):
    np.savez("two.npz", a=TOKENS, b=TOKENS)
    np.save("nan.npy", np.array([[0.0, 1.0], [np.nan, 1.0]]))
    np.save("object.npy", np.array([{}, 1.0], dtype=object), allow_pickle=True)
    np.save("truth.npy", np.ones((2, 2), dtype=bool))
    np.save("text.npy", np.array(["a", "b"]))
    np.save("cube.npy", np.ones((2, 2, 2)))
    for kind in ("npy", "npz"):
        source = Path("../data/tokens.npy" if kind == "npy" else "two.npz").read_bytes()
        Path(f"cut.{kind}").write_bytes(source[: len(source) // 2])
    whole = Path("../data/tokens.npy").read_bytes()
    Path("huge.npy").write_bytes(whole.replace(b"(3, 2), }          ", b"(9999999999999, 9)}"))
    Path("words.csv").write_text("x,y\n1,2\n3,b\n")
    Path("empty.csv").write_text("x,y\n")
    Path("uneven.csv").write_text("1,2\n3\n")
    assert sentence in refused(case, f"initial.points={name}")


def test_a_file_that_is_not_there_is_named_as_in_the_case(case):
    os.remove("../data/tokens.npy")
    assert refused(case).startswith('initial.points: is "data/tokens.npy", which is no file in the folder of the case')
