"""Every rule that a schema can't say, one subject per file, each rule once: where it sits, what it says to people, and
what it means, twice.

The messages are what `kubectl apply` shows, so each says what to change. The API server estimates the cost of an
expression from the bounds of lists and texts before it accepts the definition (10 million units each), and stops an
evaluation after a million.
"""

from rocketfleet.api.rule import ChangeRule, Rule
from rocketfleet.api.rules.allocation import ALLOCATION
from rocketfleet.api.rules.consuming import CONSUMING, SUBSCRIPTIONS, THREADS
from rocketfleet.api.rules.engine import ENGINE
from rocketfleet.api.rules.naming import CHANGES, NAMES, OBJECT
from rocketfleet.api.rules.scaling import SCALING

RULES: tuple[Rule, ...] = (
    *OBJECT,
    *NAMES,
    *SUBSCRIPTIONS,
    *CONSUMING,
    *THREADS,
    *ALLOCATION,
    *SCALING,
    *ENGINE,
)
CHANGE_RULES: tuple[ChangeRule, ...] = CHANGES
EVERY_RULE: tuple[Rule | ChangeRule, ...] = (*RULES, *CHANGE_RULES)
