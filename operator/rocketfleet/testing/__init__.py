"""For tests of handlers, and of Rocketfleet itself: what happened is written down, and compared with the promises.

What is listed here is public, as docs/testing.md describes it. To read the code:

- `history.py` is the format: one line for each thing that happened, written by whoever did or saw it
- `recording.py` wraps a handler so that it writes down what it handles
- `checker/` compares a history with what is promised: `check(history, promises)` gives a `HistoryVerdict`
- `group/` is a group of real worker processes on a development broker, for `pytest_plugin.py` and its fixtures

A harness that makes its own faults needs the first three only: it writes `fault` and `healed` around what it does, has
an observer write what brokers say, and gives `read([directory])` to `check`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketfleet.testing.checker.check import check
    from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
    from rocketfleet.testing.checker.history_verdict import HistoryVerdict
    from rocketfleet.testing.checker.promises import Promises
    from rocketfleet.testing.group.worker_group import WorkerGroup
    from rocketfleet.testing.group.worker_under_test import WorkerEndedError, WorkerUnderTest
    from rocketfleet.testing.history import (
        ChangeName,
        EventHistory,
        EventKind,
        FaultName,
        HandlingOutcome,
        HistoryEvent,
        HistoryFormatError,
        Recorder,
        read,
    )
    from rocketfleet.testing.recording import recorded

__all__ = [
    "ChangeName",
    "EventHistory",
    "EventKind",
    "FaultName",
    "FindingFamily",
    "HandlingOutcome",
    "HistoryEvent",
    "HistoryFinding",
    "HistoryFormatError",
    "HistoryVerdict",
    "Promises",
    "Recorder",
    "WorkerEndedError",
    "WorkerGroup",
    "WorkerUnderTest",
    "check",
    "read",
    "recorded",
]

# public name → module. A test keeps it, __all__ and what type checkers see above the same.
_HOMES = {
    "ChangeName": "history",
    "EventHistory": "history",
    "EventKind": "history",
    "FaultName": "history",
    "HandlingOutcome": "history",
    "HistoryEvent": "history",
    "HistoryFormatError": "history",
    "Recorder": "history",
    "read": "history",
    "recorded": "recording",
    "check": "checker.check",
    "FindingFamily": "checker.finding",
    "HistoryFinding": "checker.finding",
    "HistoryVerdict": "checker.history_verdict",
    "Promises": "checker.promises",
    "WorkerGroup": "group.worker_group",
    "WorkerEndedError": "group.worker_under_test",
    "WorkerUnderTest": "group.worker_under_test",
}

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would believe in every name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
