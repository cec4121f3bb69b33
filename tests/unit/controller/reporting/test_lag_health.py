"""What is told of a group's lag: there are words for every state that a rule may find."""

from rocketfleet.controller.reporting.lag_health import _WORDS
from rocketfleet.lag.judging.rules.verdict import LagFinding


def test_every_state_has_words() -> None:
    assert set(_WORDS) == set(LagFinding)
