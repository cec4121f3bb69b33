"""A schedule: a way through the model, the script that it becomes, and what the model says of its end. Kept as JSON.

`choose.py` writes them, a unit test holds them against the model of now, and `test_replay.py` carries them out.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.broker.replay.script import Action, Prediction

DIRECTORY = Path(__file__).parent / "schedules"


class Schedule(NamedTuple):
    """See the module."""

    name: str
    scenario: str
    mutant: str  # whose undoing this way is; empty: a rare one of the unbroken protocol
    found: str  # what comes of it there
    members: tuple[str, ...]
    running: tuple[str, ...]  # from the beginning
    queues: int
    mode: str
    lives: float  # of a lock; the broker's usual 60 s, or few, where somebody waits for it to end
    fresh: bool  # the group has not begun
    restarted: bool  # the broker has been killed a moment ago
    slow: bool  # members may take their time to come back to a broker
    labels: tuple[str, ...]  # the way
    refused: tuple[str, ...]  # what the broken protocol did on it, and ours does not
    skipped: tuple[str, ...]  # what has no counterpart in the real world
    actions: tuple[Action, ...]
    prediction: Prediction

    @property
    def file(self) -> Path:
        return DIRECTORY / f"{self.name.replace(',', '').replace(' ', '-')}.json"

    def written(self) -> str:
        plain: dict[str, Any] = self._asdict()
        plain["actions"] = [action.written() for action in self.actions]
        plain["prediction"] = self.prediction._asdict()
        return json.dumps(plain, indent=1) + "\n"


def read(path: Path) -> Schedule:
    plain = json.loads(path.read_text())
    lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
    predicted: dict[str, Any] = plain["prediction"]
    prediction = Prediction(
        **{**predicted, "owners": tuple(predicted["owners"]), "present": tuple(predicted["present"])}
    )
    actions = tuple(Action(**action) for action in plain["actions"])
    return Schedule(**{**plain, **lists, "actions": actions, "prediction": prediction})


def kept() -> list[Schedule]:
    """All that are kept, by name."""
    return [read(path) for path in sorted(DIRECTORY.glob("*.json"))]
