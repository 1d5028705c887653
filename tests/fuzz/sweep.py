"""Every call with each of its arguments exchanged for every odd value, in turn: ``python -m tests.fuzz.sweep``.

What chance seldom meets, thousands of inputs in a minute. Faults are printed and counted; the exit code says whether
there was any.
"""

import sys
import time
import traceback

from tests.fuzz import values
from tests.fuzz.inputs import calls, throw

PATIENCE = 10  # seconds of a processor


def sweep():
    """How many inputs were thrown, and how many were not answered as they should be."""
    thrown = faults = 0
    for name in sorted(calls()):
        for place in range(len(calls()[name][1])):
            for odd in [*values.ODD, *values.NUMBERS]:
                arguments, started = list(calls()[name][1]), time.process_time()
                arguments[place] = odd
                thrown, answer = thrown + 1, ""
                try:
                    throw("call", (name, arguments))
                except Exception:
                    answer = traceback.format_exc(limit=-3)
                if (took := time.process_time() - started) > PATIENCE:
                    answer += f"{took:.3g} s"
                if answer:
                    faults += 1
                    print(f"{name}, argument {place}: {odd!r:.200}\n{answer}", flush=True)
    return thrown, faults


if __name__ == "__main__":
    thrown, faults = sweep()
    print(f"{thrown:,} inputs, {faults} faults")
    sys.exit(bool(faults))
