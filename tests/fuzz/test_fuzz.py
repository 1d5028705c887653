"""Whatever is thrown at it: 300 inputs, the same in every run. ``make fuzz`` throws 10,000, others each time."""

import signal

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.fuzz.inputs import INPUTS, throw

PATIENCE = 60  # seconds for one input; the first ones compile
EXAMPLES = {"case": 60, "text": 40, "settings": 50, "call": 90, "command": 30, "file": 30}


@pytest.fixture
def watch():
    """Raise where something takes too long: a hang is a fault too."""

    def bark(*_):
        pytest.fail(f"took longer than {PATIENCE} s")

    previous = signal.signal(signal.SIGALRM, bark)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.mark.quick
@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_input_ends_in_our_own_error_or_a_sound_result(kind, watch):
    @settings(
        max_examples=EXAMPLES[kind],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def each(data):
        value = data.draw(INPUTS[kind][0])
        signal.alarm(PATIENCE)
        throw(kind, value)

    each()
