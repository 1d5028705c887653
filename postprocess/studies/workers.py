"""Processes that compute pieces of a study, each of which is asked by one thread of ours at a time.

They are started as programs of their own (``worker``) and not as copies of this one: a user's script need not guard
what it does, and threads of compiled code are not copied. They end when nobody asks any more, however that came.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from vlasov.errors import SolverError
from vlasov.postprocess.studies.store import Result

_PROGRAM = "vlasov.postprocess.studies.worker"


class Workers:
    """So many processes at work on a study that is given as text."""

    def __init__(self, study: str, count: int) -> None:
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._all = [_Worker(study) for _ in range(count)]
        for worker in self._all:
            self._idle.put(worker)

    def kill(self) -> None:
        """End all of them, whatever they do."""
        for worker in self._all:
            worker.kill()

    def close(self) -> None:
        """Nobody asks any more."""
        for worker in self._all:
            worker.close()

    def run(self, piece: Any) -> list[Result]:
        """The results of a piece, by whoever is idle."""
        worker = self._idle.get()
        try:
            return worker.ask(piece)
        finally:
            self._idle.put(worker)


class _Worker:
    """One process, begun when it is first asked, and again if it died."""

    def __init__(self, study: str) -> None:
        self._study = study
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def ask(self, piece: Any) -> list[Result]:
        process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(piece, process.stdin)
            process.stdin.flush()
            answer: list[Result] | Exception = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            code = self._gone(process)
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise SolverError(f"the process that computed it ended with {how}") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self) -> None:
        self._ended = True
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        self.kill()
        if self._process is not None:
            self._gone(self._process)

    def _gone(self, process: subprocess.Popen[bytes]) -> int:
        """How a process ended; another one begins when there is something to do."""
        self._process = None
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what it did not read any more
                pipe.close()  # type: ignore[union-attr]  # both are ours
        return code

    def _begin(self) -> subprocess.Popen[bytes]:
        if self._ended:
            raise SolverError("the study is over")
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C is ours, and we end them
        )
        assert process.stdin is not None
        pickle.dump(self._study, process.stdin)
        return process
