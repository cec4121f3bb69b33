"""What a run has shown: the findings of the checker, those of the harness, and figures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.schedule import FaultSchedule

from rocketfleet.testing.history import EventHistory, EventKind, HandlingOutcome, read


@dataclass
class RunVerdict:
    """`findings` are sentences with, for each, the part of the history that shows it."""

    schedule: FaultSchedule
    findings: tuple[tuple[str, tuple[str, ...]], ...]
    sent: int
    handled: int
    repeated: int
    seconds: float = 0.0

    def __str__(self) -> str:
        good = "good" if not self.findings else f"BAD, {len(self.findings)} findings"
        head = (
            f"VERDICT {good}: seed {self.schedule.seed}, {self.schedule.mode}, {len(self.schedule.faults)} faults, "
            f"{self.sent} sent, {self.handled} handled, {self.repeated} repeated, {self.seconds:.0f} s"
        )
        lines = [head]
        for sentence, evidence in self.findings:
            lines += [f"- {sentence}", *(f"    {line}" for line in evidence)]
        return "\n".join(lines)


def succeeded(history: EventHistory) -> set[str]:
    """The messages that a handler has handled to the end."""
    return {
        event.message
        for event in history.kind(EventKind.END)
        if event.details.get("outcome") == HandlingOutcome.SUCCESS
    }


def judge_run(schedule: FaultSchedule, records: Path, problems: Sequence[str]) -> RunVerdict:
    """Compare what happened with what is promised."""
    history = read([records])
    sent = {event.message: event for event in history.kind(EventKind.SENT)}
    done = succeeded(history)
    times = Counter(
        event.message
        for event in history.kind(EventKind.END)
        if event.details.get("outcome") == HandlingOutcome.SUCCESS
    )
    repeated = sum(count > 1 for count in times.values())
    findings: list[tuple[str, tuple[str, ...]]] = [(problem, ()) for problem in problems]
    lost = sorted(sent.keys() - done)
    if lost and not schedule.stage.from_last_offset:
        findings.append((f"{len(lost)} messages were lost", tuple(str(sent[one]) for one in lost[:10])))
    return RunVerdict(schedule, tuple(findings), len(sent), len(done), repeated)
