"""Throw many inputs, in processes of their own: ``python -m tests.fuzz.many [COUNT] [SEED] [LOG]``, see ``make fuzz``.

Each input ends in our own error, a sound result, or a word after five seconds on how long it will take; else it is a
traceback, a hang (over 10 s of a processor, or much longer of waiting) or a crash (the process ended), which are
printed with the input and counted. The exit code says whether there was any. Batches are kept in LOG, if it is given,
and not thrown again: an interrupted run goes on.
"""

import collections
import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

PATIENCE, WAITING = 10, 120  # seconds of a processor for one input, however busy the machine is; and of the clock
BATCH = 50
SHARES = {"call": 8, "physics": 6, "case": 5, "settings": 3, "text": 2, "command": 1, "file": 1}


def worker(kind, seed, count):
    """Throw so many inputs, and say so line by line: before each one, and what came of it."""
    from hypothesis import HealthCheck, Phase, given, seed as seeded, settings, strategies as st

    from tests.fuzz.inputs import INPUTS, given as valid_things, throw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so that what is said of a hang begins with where it is
        valid_things()  # which loads and compiles most of what there is
    say = os.fdopen(os.dup(1), "w", buffering=1)

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def each(data):
        value = data.draw(INPUTS[kind][0])
        say.write("T " + json.dumps(repr(value)[:600]) + "\n")
        faulthandler.dump_traceback_later(WAITING, exit=True)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            say.write("D " + json.dumps(throw(kind, value)) + "\n")
        except Exception:
            say.write("F " + json.dumps(traceback.format_exc()[-500:]) + "\n")
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()

    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # also inside of kernels; then the process ends
    each()


def batch(kind, seed, count):
    """Throw a batch in a process: what came of each input, the input, and what was said."""
    command = [sys.executable, "-m", "tests.fuzz.many", "--worker", kind, str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found, thrown = [], "(starting)"
    for line in done.stdout.splitlines():
        what, said = line[0], json.loads(line[2:])
        if what == "T":
            thrown = said
        else:
            found.append(("traceback" if what == "F" else "answered", thrown, said))
    if done.returncode != 0:
        what = "hang" if done.returncode == -signal.SIGPROF or "Timeout (" in done.stderr else "crash"
        found.append((what, thrown, done.stderr[:1500]))  # where it is stands first
    return found


def patient(kind, seed, count):
    """A batch, and once more if it hangs: what compiles the first time is no hang."""
    found = batch(kind, seed, count)
    return batch(kind, seed, count) if found[-1][0] == "hang" else found


def logged(kind, seed, count, log):
    """A batch, or what the log holds of it."""
    batches = map(json.loads, Path(log).read_text().splitlines()) if Path(log).is_file() else ()
    for head, found in batches:
        if head == [kind, seed, count]:
            return found
    found = patient(kind, seed, count)
    with open(log, "a") as file:
        file.write(json.dumps([[kind, seed, count], found]) + "\n")
    return found


def main(total, seed, log=os.devnull):
    """Batches of all kinds until the total is reached; prints faults as they come and a table at the end."""
    began, found, words = time.monotonic(), collections.Counter(), collections.Counter()
    order = [kind for kind, share in SHARES.items() for _ in range(share)]
    while sum(found.values()) < total:
        kind = order[7 * seed % len(order)]  # 7 and the number of shares have no common factor: all kinds take turns
        for what, thrown, said in logged(kind, seed, min(BATCH, total), log):
            found[what] += 1
            words[kind, said if what == "answered" else what] += 1
            if what != "answered":
                print(f"\n{what}, {kind}, seed {seed}: {thrown}\n{said}", flush=True)
        seed += 1
    print("\n".join(f"{kind:10} {word:30} {count}" for (kind, word), count in sorted(words.items()) if count > 4))
    faults = {what: found[what] for what in ("traceback", "hang", "crash")}
    print(f"{sum(found.values())} inputs in {time.monotonic() - began:.0f} s: {faults}")
    return 1 if any(faults.values()) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        first = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, first, *sys.argv[3:4]))
