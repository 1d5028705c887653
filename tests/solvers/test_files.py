"""Files appear whole or not at all, also where several threads write into one folder."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from vlasov.solvers.files import written_whole


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
