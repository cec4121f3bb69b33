"""What the records of a scene come to: sent, handled, handled twice, and where each queue should stand."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocketfleet.demo.verdict import DemoVerdict, judge

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Ledger:
    """A scene's records, read as a whole."""

    events: tuple[dict[str, Any], ...]

    @property
    def sent(self) -> frozenset[str]:
        return frozenset(event["id"] for event in self.events if event["event"] == "sent")

    @property
    def finished(self) -> frozenset[str]:
        return frozenset(event["id"] for event in self.events if event["event"] == "finish")

    @property
    def ended(self) -> bool:
        """Whether the traffic has said that it is over."""
        return any(event["event"] == "end" for event in self.events)

    @property
    def pods(self) -> frozenset[str]:
        """Who has handled something."""
        return frozenset(event["pod"] for event in self.events if event["event"] == "finish")

    def begun_by(self, pod: str) -> frozenset[str]:
        """What a pod has begun."""
        return frozenset(event["id"] for event in self.events if event["event"] == "begin" and event["pod"] == pod)

    def finished_after(self, moment: float) -> int:
        return sum(1 for event in self.events if event["event"] == "finish" and event["time"] > moment)

    def verdict(self) -> DemoVerdict:
        """Lost, repeated, out of order. A message that was stored twice, by a send whose answer was lost, is two."""
        return judge(self.sent, _without_second_copies(self.events))

    def stands(self) -> dict[str, int]:
        """For each queue, the offset after the last message that was finished."""
        stands: dict[str, int] = {}
        for event in self.events:
            if event["event"] == "finish" and not event["queue"].startswith("%"):
                stands[event["queue"]] = max(stands.get(event["queue"], 0), int(event["offset"]) + 1)
        return stands


def _without_second_copies(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    events = list(events)
    unsure = {event["id"] for event in events if event["event"] == "unsure"}
    places: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for event in events:
        if event["event"] in ("begin", "finish"):
            places[event["id"]].add((event["queue"], event["offset"]))
    first = {one: min(found, key=lambda place: place[1]) for one, found in places.items() if one in unsure}
    return [
        event
        for event in events
        if event.get("id") not in first
        or event["event"] not in ("begin", "finish")
        or (event["queue"], event["offset"]) == first[event["id"]]
    ]
