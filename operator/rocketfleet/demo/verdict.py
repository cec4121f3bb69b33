"""What became of the messages: lost, repeated, out of order. From what was sent and what the members wrote."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class DemoVerdict:
    sent: int
    consumed: int
    lost: frozenset[str]
    repeated: frozenset[str]  # finished more than once
    out_of_order: tuple[str, ...]  # begun for the first time after a later message of the same key

    @property
    def good(self) -> bool:
        return not self.lost and not self.repeated and not self.out_of_order

    def __str__(self) -> str:
        return (
            f"sent={self.sent} consumed={self.consumed} lost={len(self.lost)} "
            f"duplicated={len(self.repeated)} out_of_order={len(self.out_of_order)}"
        )


def judge(sent: Iterable[str], events: Iterable[dict[str, Any]]) -> DemoVerdict:
    """Message ids are `key:number`, numbered upwards within a key."""
    sent = frozenset(sent)
    finished: Counter[str] = Counter()
    highest: dict[str, int] = {}
    begun: set[str] = set()
    out_of_order = []
    for event in sorted(events, key=lambda event: event["time"]):
        if event["event"] == "finish":
            finished[event["id"]] += 1
        elif event["event"] == "begin" and event["id"] not in begun:
            begun.add(event["id"])
            key, number = event["id"].split(":")
            if int(number) < highest.get(key, -1):
                out_of_order.append(event["id"])
            highest[key] = max(highest.get(key, -1), int(number))
    return DemoVerdict(
        sent=len(sent),
        consumed=len(finished),
        lost=sent - finished.keys(),
        repeated=frozenset(one for one, times in finished.items() if times > 1),
        out_of_order=tuple(out_of_order),
    )


def read_record(path: Path) -> list[dict[str, Any]]:
    """A member's record; the last line of a killed member may be cut."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


def read_records(directory: Path) -> list[dict[str, Any]]:
    """What all members wrote down in a directory."""
    return [event for path in sorted(directory.glob("*.jsonl")) for event in read_record(path)]
