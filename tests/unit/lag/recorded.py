"""Windows as they were seen on a real broker, kept as JSON: tests/broker/lag/test_rules_live.py writes them when
ROCKETFLEET_RECORD_WINDOWS is set, and test_recorded_windows.py judges them.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

from rocketfleet.lag.figures import Attempts, GroupLag, QueueLag, Work
from rocketfleet.lag.judging.rules import RuleLimits
from rocketfleet.lag.judging.window import Window
from rocketfleet.wire.queue import MessageQueue

DIRECTORY = Path(__file__).parent / "windows"
# Three looks a moment apart stand for minutes, and offsets are committed by the test itself.
LIMITS = RuleLimits(moments=3, commit_seconds=0.0)


def save(name: str, window: Window, state: str) -> None:
    """Keep a window and what the rules said of it."""
    content = {"state": state, "since": window.since, "moments": [dataclasses.asdict(one) for one in window.moments]}
    text = json.dumps(content, default=sorted, indent=1)  # a set of members becomes a sorted list
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / f"{name}.json").write_text(text + "\n")


def load(path: Path) -> tuple[Window, str]:
    content = json.loads(path.read_text())
    moments = tuple(_moment(one) for one in content["moments"])
    return Window(moments=moments, since=content["since"]), content["state"]


def _moment(fields: dict[str, Any]) -> GroupLag:
    rows = tuple(QueueLag(**{**row, "queue": MessageQueue(*row["queue"])}) for row in fields["queues"])
    worst, members = fields["worst"], fields["member_ids"]
    work, attempts = fields.get("work"), fields.get("attempts")
    return GroupLag(
        **{
            **fields,
            "queues": rows,
            "worst": None if worst is None else MessageQueue(*worst),
            "member_ids": None if members is None else frozenset(members),
            "work": None if work is None else Work(**work),
            "attempts": None if attempts is None else Attempts(**attempts),
        }
    )
