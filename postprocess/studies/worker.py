"""A process that computes pieces of a study: ``python -m vlasov.postprocess.studies.worker``, started by ``workers``.

It reads the study as text, then pieces, and answers each by its results or by the exception that ended it.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from contextlib import suppress
from typing import Any, BinaryIO

from vlasov.errors import SolverError


def serve(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nobody asks."""
    from vlasov.postprocess.studies.schedule import run_described

    study = pickle.load(asked)
    while True:
        piece = pickle.load(asked)
        try:
            answer: Any = run_described(study, piece)
        except Exception as error:
            answer = error
        answers.write(_pickled(answer))
        answers.flush()


def _pickled(answer: Any) -> bytes:
    try:
        text = pickle.dumps(answer)
        pickle.loads(text)
    except Exception:  # an exception of somebody else's
        return pickle.dumps(SolverError(f"{type(answer).__name__}: {answer}"))
    return text


def main() -> None:
    """Speak through what was standard output, which from now on is that for errors."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")  # results say what is doubtful
    with suppress(EOFError, BrokenPipeError):
        serve(sys.stdin.buffer, answers)
    os._exit(0)  # nobody is left to hear of what could still go wrong


if __name__ == "__main__":
    main()
