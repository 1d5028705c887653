"""What is cited: BibTeX that a parser reads, and of each run what it used and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.cli.app import app
from vlasov.postprocess import registry
from vlasov.postprocess.citing import cite_all, entries, reasons

PLANE = 0.3 * np.eye(2)
ALWAYS = {"vlasov", "castin2025"}
PACKAGES = {"hoyer2017", "harris2020"}


def keys(text: str) -> set[str]:
    """The keys of the entries, by a parser that is not ours."""
    parsing = pytest.importorskip("pybtex.database")
    return set(parsing.parse_string(text, "bibtex").entries)


def problem(attention: Any = None, initial: Any = None, **around: Any) -> vl.Problem:
    start = vl.Gaussian([0.2, 0.1], 0.1 * np.eye(2)) if initial is None else initial
    return vl.Problem(vl.Softmax(A=PLANE) if attention is None else attention, start, 0.2, **around)


@pytest.fixture(scope="module")
def runs() -> dict[str, xr.Dataset]:
    tokens = vl.Particles(np.random.default_rng(0).normal(size=(12, 2)))
    return {
        "gaussian": vl.solve(problem(), "gaussian"),
        "tokens": vl.solve(problem(initial=tokens), "particles"),
        "layers": vl.solve(problem(), "layers", n=16, depth=2),
        "cells": vl.solve(problem(), "finite-volume", cells=16, reconstruction="muscl"),
        "sinkhorn": vl.solve(problem(vl.Sinkhorn(A=PLANE)), "gaussian"),
    }


def test_every_entry_is_bibtex_with_author_title_and_no_pages() -> None:
    parsing = pytest.importorskip("pybtex.database")
    parsed = parsing.parse_string("\n".join(entries().values()), "bibtex")
    assert list(parsed.entries) == list(entries())
    for key, entry in parsed.entries.items():
        assert entry.persons["author"], key
        assert entry.fields["title"], key
        assert "pages" not in entry.fields, key


def test_the_manual_reads_the_same_file() -> None:
    link = Path(__file__).parents[2] / "docs" / "references.bib"
    assert link.resolve() == Path(reasons.__file__).with_name("references.bib").resolve()


def test_the_software_is_cited_as_in_citation_cff() -> None:
    parsing = pytest.importorskip("pybtex.database")
    cff = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    own = parsing.parse_string(vl.cite(problem()), "bibtex").entries["vlasov"]
    assert f'title: "{own.fields["title"]}"' in cff
    assert f"name: {str(own.persons['author'][0]).strip('{}')}" in cff
    assert own.fields["note"] == f"Version {vl.__version__}"
    assert "arXiv:" + parsing.parse_string(vl.cite(problem()), "bibtex").entries["castin2025"].fields["eprint"] in cff


def test_every_reason_has_an_entry_and_every_key_of_a_rule_exists() -> None:
    kinds = [registry.kind_named(name) for name in registry.names()]
    rules = [*reasons.ATTENTION.values(), *reasons.SCHEMES.values(), *(kind.cites for kind in kinds if kind)]
    for key, why in (reason for rule in rules for reason in rule):
        assert key in entries(), why
        assert "@" not in why


def test_rules_cover_all_that_is_public() -> None:
    from vlasov.solvers.finite_volume.schemes import SCHEMES

    attentions = [
        vl.Softmax, vl.L2, vl.Sinkhorn, vl.Linear, vl.Sigmoid, vl.Exponential, vl.ReLU, vl.Hardmax, vl.MultiHead,
        vl.Masked,
    ]  # fmt: skip
    assert {one.kind for one in attentions} == set(reasons.ATTENTION)
    assert set(SCHEMES) == set(reasons.SCHEMES)


@pytest.mark.parametrize(
    ("attention", "cited"),
    [
        (vl.Softmax(A=PLANE), {"vaswani2017"}),
        (vl.L2(Q=PLANE, K=PLANE), {"kim2021"}),
        (vl.Sinkhorn(A=PLANE), {"sander2022", "cuturi2013", "walker2011"}),
        (vl.Linear(A=PLANE), {"katharopoulos2020"}),
        (vl.ReLU(A=PLANE), set()),
        (vl.Masked(vl.L2(Q=PLANE, K=PLANE)), {"kim2021", "vaswani2017", "castin2024"}),
        (vl.MultiHead([vl.Softmax(A=PLANE), vl.Linear(A=PLANE)]), {"vaswani2017", "katharopoulos2020"}),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_problem_cites_its_attention_and_no_other(attention: Any, cited: set[str]) -> None:
    assert keys(vl.cite(problem(attention))) == ALWAYS | cited


def test_blocks_cite_their_parts() -> None:
    post = problem(initial=vl.Particles([[1.0, 0.5]]), layer_norm=vl.LayerNorm())
    pre = problem(layer_norm=vl.LayerNorm(placement="pre"))
    assert keys(vl.cite(post)) - ALWAYS == {"vaswani2017", "ba2016", "zhang2019", "geshkovski2024", "bruno2025"}
    assert keys(vl.cite(pre)) - ALWAYS == {"vaswani2017", "ba2016", "zhang2019", "xiong2020"}
    assert "% softmax attention; the MLP of each token" in vl.cite(problem(mlp=vl.MLP(np.eye(2))))


@pytest.mark.parametrize(
    ("name", "cited"),
    [
        ("gaussian", {"vaswani2017", "hairer1993", "virtanen2020"}),
        ("tokens", {"vaswani2017", "hairer1993", "virtanen2020", "lam2015"}),
        ("layers", {"vaswani2017", "sander2022", "joe2008", "lam2015"}),
        ("cells", {"vaswani2017", "leveque2002", "vanleer1977", "shu1988", "hairer1993", "virtanen2020", "lam2015"}),
        ("sinkhorn", {"sander2022", "cuturi2013", "walker2011", "janati2020", "hairer1993", "virtanen2020"}),
    ],
)
def test_a_run_cites_what_it_used_and_nothing_else(runs: dict[str, xr.Dataset], name: str, cited: set[str]) -> None:
    assert keys(vl.cite(runs[name])) == ALWAYS | PACKAGES | cited


def test_what_is_made_of_runs_cites_them_and_itself(runs: dict[str, xr.Dataset]) -> None:
    held = keys(vl.cite(vl.compare(runs["gaussian"], runs["cells"], p=2)))
    assert {"flamary2021", "vanleer1977", "hairer1993"} <= held
    assert {"geshkovski2023", "barber1996"} <= keys(vl.cite(vl.clusters(runs["tokens"])))
    bulk = vl.covariances(vl.Softmax(A=PLANE), [np.eye(2)], horizon=0.1)
    assert {"castin2025", "hairer1993"} <= keys(vl.cite(bulk))


def test_a_file_is_worth_its_run_and_its_version_is_told(runs: dict[str, xr.Dataset], tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    old = runs["tokens"].assign_attrs(vlasov_version="0.0.9")
    old.to_netcdf(path, engine="h5netcdf")
    assert vl.cite(path) == vl.cite(str(path)) == vl.cite(old)
    assert "Version 0.0.9}" in vl.cite(path)
    assert "Version 0.0.9, " + vl.__version__ in cite_all([path, problem()])


def test_hostile_words_of_a_file_do_not_reach_the_bibliography(runs: dict[str, xr.Dataset]) -> None:
    odd = runs["tokens"].assign_attrs(vlasov_version="} @misc{x,", title="@evil{", options="[1]", solver="@book{y,")
    assert keys(vl.cite(odd)) == ALWAYS | PACKAGES | {"vaswani2017"}


def test_a_parameter_that_is_a_function_is_no_obstacle() -> None:
    turning = problem(vl.Softmax(A=lambda t: (1 + t) * PLANE))
    assert "vaswani2017" in keys(vl.cite(turning))
    assert {"castin2025", "hairer1993"} <= keys(vl.cite(vl.solve(turning, "gaussian")))


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("nothing.nc", 'path: "nothing.nc" is not a file'),
        ("mixture2d", 'case: "mixture2d" is not known; did you mean "mixture-2d"?'),
        (".", 'path: "." is a folder without a finished study (study.nc); give a .nc file'),
        (3, "what: is 3; give what vl.solve or a study returned"),
        (xr.Dataset(), "what: is no Dataset that vlasov made"),
    ],
)
def test_mistakes_get_one_sentence(what: Any, sentence: str) -> None:
    with pytest.raises(vl.InputError, match="^" + re.escape(sentence)) as mistake:
        vl.cite(what)
    assert "\n" not in str(mistake.value)


def test_the_command_line_prints_or_writes_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    app(["cite", "gaussian-collapse", "l2-growth"], standalone_mode=False)
    printed = capsys.readouterr().out
    assert keys(printed) == ALWAYS | {"vaswani2017", "kim2021"}
    target = tmp_path / "papers.bib"
    app(["cite", "gaussian-collapse", "l2-growth", "-o", str(target)], standalone_mode=False)
    assert target.read_text(encoding="utf-8") == printed


def test_the_command_line_replaces_nothing_that_it_reads(tmp_path: Path) -> None:
    run, twin, bib = tmp_path / "run.nc", tmp_path / "other.nc", tmp_path / "papers.bib"
    vl.solve(problem(), "gaussian", output=run)
    held = run.read_bytes()
    for target in (run, twin, tmp_path / "papers.txt", tmp_path / "papers"):
        with pytest.raises(vl.InputError, match=r"^output: .* must end in \.bib$"):
            app(["cite", str(run), "-o", str(target)], standalone_mode=False)
    bib.hardlink_to(run)
    with pytest.raises(vl.InputError, match="is what is read, and would be lost"):
        app(["cite", str(run), "-o", str(bib)], standalone_mode=False)
    with pytest.raises(vl.InputError, match="does not exist; create it first"):
        app(["cite", str(run), "-o", str(tmp_path / "no" / "papers.bib")], standalone_mode=False)
    assert run.read_bytes() == held
    bib.unlink()
    bib.write_text("of before")
    with pytest.raises(vl.InputError, match="is there already"):
        app(["cite", str(run), "-o", str(bib)], standalone_mode=False)
    app(["cite", str(run), "-o", str(bib), "--force"], standalone_mode=False)
    assert keys(bib.read_text(encoding="utf-8")) >= ALWAYS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["papers.bib", "run.nc"]


def test_a_folder_of_a_study_is_cited_as_its_file(tmp_path: Path) -> None:
    study = vl.mean_field_study(problem(), n=[4, 8], replicas=2, output=tmp_path / "study")
    text = vl.cite(study)
    assert "% intervals of slopes, by the jackknife over replicas\n@article{efron1981," in text
    assert "bootstrap" not in text.lower()
    assert vl.cite(tmp_path / "study") == vl.cite(str(tmp_path / "study" / "study.nc")) == vl.cite(study)
