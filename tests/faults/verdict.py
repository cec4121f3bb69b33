"""What a run has shown: what the checker found in the history, and what the harness saw by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.schedule import FaultSchedule

from rocketfleet.base.counting import counted
from rocketfleet.consumer.settings import Handover
from rocketfleet.testing.checker.check import check
from rocketfleet.testing.checker.history_verdict import HistoryVerdict
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.history import ChangeName, EventHistory, EventKind, HandlingOutcome, read


@dataclass
class RunVerdict:
    """`problems` are what the harness saw: members that ended by themselves, a group that does not settle."""

    schedule: FaultSchedule
    history: HistoryVerdict
    problems: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def findings(self) -> int:
        return len(self.history.findings) + len(self.problems)

    def __str__(self) -> str:
        good = "good" if not self.findings else f"BAD, {counted(self.findings, 'finding')}"
        schedule = self.schedule
        head = f"VERDICT {good}: seed {schedule.seed}, {schedule.mode}, {counted(len(schedule.faults), 'fault')} "
        return "\n".join(
            [f"{head}in {self.seconds:.0f} s", *(f"harness: {problem}" for problem in self.problems), str(self.history)]
        )


def promises_of(schedule: FaultSchedule) -> Promises:
    """What is promised to a group of this kind."""
    stage, mode = schedule.stage, schedule.mode
    exclusive = mode.handover is Handover.EXCLUSIVE or mode.is_orderly  # orderly groups wait in both
    return Promises(
        orderly=mode.is_orderly,
        exclusive=exclusive,
        from_beginning=not stage.from_last_offset,
        repeats=not exclusive,
        lock_seconds=stage.lock_seconds,
        renewal_seconds=stage.lock_seconds / 3,
    )


def succeeded(history: EventHistory) -> set[str]:
    """The messages that a handler has handled to the end."""
    return {
        event.message
        for event in history.kind(EventKind.END)
        if event.details.get("outcome") == HandlingOutcome.SUCCESS
    }


def expected(history: EventHistory) -> set[str]:
    """The messages that somebody has to handle: all, or those sent after a LastOffset group began."""
    began = [event.at for event in history.kind(EventKind.CHANGE) if event.details["what"] == ChangeName.GROUP_BEGAN]
    return {event.message for event in history.kind(EventKind.SENT) if not began or event.at > began[0]}


def judge_run(schedule: FaultSchedule, records: Path, problems: Sequence[str]) -> RunVerdict:
    """Compare what happened with what is promised."""
    return RunVerdict(schedule, check(read([records]), promises_of(schedule)), tuple(problems))
