"""The rules on windows that were recorded on a real broker."""

from pathlib import Path

import pytest
from tests.unit.lag import recorded

from rocketfleet.lag.judging.rules import LagFinding, judge

WINDOWS = sorted(recorded.DIRECTORY.glob("*.json"))


@pytest.mark.parametrize("path", WINDOWS, ids=lambda path: path.stem)
def test_a_recorded_window_is_judged_as_it_was(path: Path) -> None:
    window, state = recorded.load(path)
    assert judge(window, recorded.LIMITS).state is LagFinding(state)


def test_every_accusation_is_among_them() -> None:
    states = {recorded.load(path)[1] for path in WINDOWS}
    assert states >= {state.value for state in LagFinding if state is not LagFinding.UNKNOWN}


@pytest.mark.parametrize("path", WINDOWS, ids=lambda path: path.stem)
def test_after_a_reset_none_of_them_is_accused(path: Path) -> None:
    window, _ = recorded.load(path)
    assert window.latest is not None
    assert judge(window.reset(window.latest.observed_at), recorded.LIMITS).state is LagFinding.OK
