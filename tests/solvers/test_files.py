"""Files appear whole or not at all, also where several threads write into one folder."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import vlasov as vl
from vlasov.solvers.files import written_whole
from vlasov.solvers.targets import check_place


@pytest.mark.quick
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "run.txt"
    target.write_text("old")

    def fail():
        with written_whole(target) as unfinished:
            unfinished.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("run.txt", "old")]


def test_threads_do_not_write_over_each_other(tmp_path):
    def write(k):
        with written_whole(tmp_path / f"{k}.txt") as unfinished:
            for part in range(200):
                with unfinished.open("a") as file:
                    file.write(f"{k} {part}\n")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(8)))
    for k in range(8):
        assert (tmp_path / f"{k}.txt").read_text() == "".join(f"{k} {part}\n" for part in range(200))
    assert len(list(tmp_path.iterdir())) == 8


def test_a_link_goes_on_pointing_where_it_did(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run.txt").symlink_to("disk/run.txt")
    with written_whole(tmp_path / "run.txt") as unfinished:
        unfinished.write_text("new")
        assert unfinished.parent == tmp_path / "disk"
    assert (tmp_path / "run.txt").is_symlink()
    assert (tmp_path / "disk" / "run.txt").read_text() == "new"


def test_names_as_long_as_they_may_be_and_no_longer(tmp_path):
    longest = tmp_path / ("é" * 126 + ".nc")  # 255 bytes
    check_place(longest)
    with written_whole(longest) as unfinished:
        unfinished.write_text("new")
    assert longest.read_text() == "new"
    longest.unlink()
    with pytest.raises(vl.InputError, match=r"cannot be written \(File name too long\)"):
        check_place(tmp_path / ("é" * 127 + ".nc"))
    assert not list(tmp_path.iterdir())


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    (tmp_path / "full.nc").symlink_to("/dev/full")
    (tmp_path / "round.nc").symlink_to("round.nc")
    for name, words in {"pipe": "is no file that could be replaced", "full": "is no file", "round": "symbolic"}.items():
        with pytest.raises(vl.InputError, match=words):
            check_place(tmp_path / f"{name}.nc")
