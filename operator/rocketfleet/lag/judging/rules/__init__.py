"""Rules after Burrow's: one file each, one pure function of a window, the rule in its comment."""

from rocketfleet.lag.judging.rules.judge import judge
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, GroupVerdict, Limits, State, Verdict

__all__ = ["DEFAULT_LIMITS", "GroupVerdict", "Limits", "State", "Verdict", "judge"]
