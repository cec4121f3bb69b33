"""What several processes answer, made into one answer of the same form.

A process that gave no answer is named with the reason, never left out: an operator that reads "confirmed" must be able
to rely on it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rocketfleet.control.exit_codes import FAILED, combined
from rocketfleet.control.messages import (
    Assignment,
    DrainReport,
    FinalOffsetReport,
    ProcessReport,
    QueueReport,
    WorkerPhase,
)

Answer = TypeVar("Answer", Assignment, DrainReport)
QueueEntry = TypeVar("QueueEntry", QueueReport, FinalOffsetReport)
_PHASES = [str(phase) for phase in WorkerPhase]


@dataclass(frozen=True, slots=True)
class Part(Generic[Answer]):
    """One process's answer, or why there is none."""

    process: int
    answer: Answer | None = None
    error: str = ""


def merged_assignment(parts: Sequence[Part[Assignment]]) -> Assignment:
    """As one process's /assignment, with the processes listed."""
    answers = [part.answer for part in parts if part.answer is not None]
    complete = len(answers) == len(parts)
    first = answers[0] if answers else None
    return Assignment(
        client_ids=_client_ids(answers),
        phase=earliest_phase([answer.phase for answer in answers]),
        ready=complete and all(answer.ready for answer in answers),
        settled=complete and all(answer.settled for answer in answers),
        members=tuple(sorted({member for answer in answers for member in answer.members})),
        queues=_in_order(queue for answer in answers for queue in answer.queues),
        work=tuple(one for answer in answers for one in answer.work),
        group=None if first is None else first.group,
        strategy=None if first is None else first.strategy,
        handover=None if first is None else first.handover,
        processes=tuple(_assigned(part) for part in parts),
    )


def merged_drain(parts: Sequence[Part[DrainReport]]) -> DrainReport:
    """As one process's /drain. Confirmed only if every process has answered and confirmed."""
    answers = [part.answer for part in parts if part.answer is not None]
    missing = [FAILED] * (len(parts) - len(answers))
    codes = [FAILED if answer.exit_code is None else answer.exit_code for answer in answers]
    return DrainReport(
        confirmed=not missing and all(answer.confirmed for answer in answers),
        queues=_in_order(queue for answer in answers for queue in answer.queues),
        unfinished=sum(answer.unfinished for answer in answers),
        exit_code=combined([*codes, *missing]),
        seconds=max((answer.seconds or 0.0 for answer in answers), default=0.0),
        group=answers[0].group if answers else None,
        client_ids=_client_ids(answers),
        processes=tuple(_drained(part) for part in parts),
    )


def earliest_phase(phases: Sequence[str]) -> str:
    """The phase of several: that of the one least far."""
    return min(phases, key=_PHASES.index, default=_PHASES[0])


def _client_ids(answers: Iterable[Assignment | DrainReport]) -> tuple[str, ...]:
    return tuple(client_id for answer in answers for client_id in answer.client_ids)


def _in_order(queues: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
    return tuple(sorted(queues, key=lambda entry: (entry.queue, entry.client_id)))


def _assigned(part: Part[Assignment]) -> ProcessReport:
    answer = part.answer
    if answer is None:
        return ProcessReport(part.process, error=part.error)
    return ProcessReport(
        part.process,
        client_id=next(iter(answer.client_ids), None),
        phase=answer.phase,
        ready=answer.ready,
        settled=answer.settled,
    )


def _drained(part: Part[DrainReport]) -> ProcessReport:
    answer = part.answer
    if answer is None:
        return ProcessReport(part.process, error=part.error)
    return ProcessReport(
        part.process,
        client_id=next(iter(answer.client_ids), None),
        phase=answer.phase,
        confirmed=answer.confirmed,
        exit_code=answer.exit_code,
    )
