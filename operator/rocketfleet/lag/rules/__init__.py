"""Rules after Burrow's: one file each, one pure function of a window, the rule in its comment."""

from rocketfleet.lag.rules.judge import judge
from rocketfleet.lag.rules.verdict import DEFAULT_LIMITS, GroupVerdict, Limits, State, Verdict

__all__ = ["DEFAULT_LIMITS", "GroupVerdict", "Limits", "State", "Verdict", "judge"]
