"""Brokers that have left the routes, and when to look whether they are back. Pure: time comes from a clock.

A broker that dies leaves the name server's routes within a moment, and routes are refreshed every half minute, so a
broker that comes back would stand unused for that long. Asking for every topic's route every two seconds would find
out sooner, and be a burden on the name server exactly when the cluster is in trouble. So for each absent broker one
topic is asked for, as a canary; only when the broker shows up there are the other topics refreshed that have missed
it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Absence:
    until: float
    topics: dict[str, None] = field(default_factory=dict)  # an ordered set


class Absences:
    """Who is missing from which topics. After `patience` seconds nobody is waited for any longer."""

    def __init__(self, clock: Callable[[], float], *, interval: float = 2.0, patience: float = 600.0) -> None:
        self._clock = clock
        self._interval = interval
        self._patience = patience
        self._missing: dict[str, _Absence] = {}
        self._next_look = float("-inf")

    def __len__(self) -> int:
        return len(self._missing)

    def route_changed(self, topic: str, before: frozenset[str], now: frozenset[str]) -> list[str]:
        """Note who has left a topic's route or joined it. Returns the other topics that miss a joiner: refresh them."""
        stale: dict[str, None] = {}
        for broker in now:
            absence = self._missing.pop(broker, None)
            if absence is not None:
                stale.update(absence.topics)
        stale.pop(topic, None)
        until = self._clock() + self._patience
        for broker in before - now:
            self._missing.setdefault(broker, _Absence(until)).topics[topic] = None
        return list(stale)

    def forget_topic(self, topic: str) -> None:
        """The topic is no longer in use."""
        for broker, absence in list(self._missing.items()):
            absence.topics.pop(topic, None)
            if not absence.topics:
                del self._missing[broker]

    def canaries(self) -> list[str]:
        """The topics whose routes to ask for now: one for each absent broker, once an interval."""
        if not self._missing:
            return []
        now = self._clock()
        if now < self._next_look:
            return []
        self._next_look = now + self._interval
        self._missing = {broker: absence for broker, absence in self._missing.items() if absence.until > now}
        return list(dict.fromkeys(next(iter(absence.topics)) for absence in self._missing.values()))
