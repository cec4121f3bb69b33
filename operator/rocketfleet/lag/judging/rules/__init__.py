"""Rules after Burrow's: one rule per file, each a pure function of a window, the rule in its comment.

`judge.py` asks them all, `verdict.py` is what they answer, `standing.py` what several of them ask of a queue.
"""

from rocketfleet.lag.judging.rules.judge import judge
from rocketfleet.lag.judging.rules.verdict import DEFAULT_LIMITS, GroupVerdict, LagFinding, LagVerdict, RuleLimits

__all__ = ["DEFAULT_LIMITS", "GroupVerdict", "LagFinding", "LagVerdict", "RuleLimits", "judge"]
