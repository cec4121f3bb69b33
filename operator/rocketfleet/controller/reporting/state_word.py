"""A group's state in one word, for lists: the worst that its conditions say. Pure."""

from collections.abc import Mapping

from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.controller.reporting.conditions import ConditionVerdict

_LATE = frozenset({"DrainTimedOut", "OffsetsUnsafe"})


def state_of(verdicts: Mapping[ConditionType, ConditionVerdict]) -> str:
    """Ready, or what is amiss: what keeps it from being ready first, then how it consumes."""
    ready = verdicts[ConditionType.READY]
    if ready.status is not Truth.TRUE or ready.reason == "Suspended":
        return ready.reason
    lag = verdicts.get(ConditionType.LAG_HEALTHY)
    if lag is not None and lag.status is Truth.FALSE:
        return lag.reason
    draining = verdicts.get(ConditionType.DRAINING)
    if draining is not None and draining.status is Truth.TRUE and draining.reason in _LATE:
        return draining.reason
    return "Ready" if ready.reason == "AllReady" else ready.reason
