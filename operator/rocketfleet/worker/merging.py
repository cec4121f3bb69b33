"""What several processes answer, made into one answer of the same form.

A process that gave no answer is named with the reason, never left out: an operator that reads "confirmed" must be able
to rely on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rocketfleet.worker.exit_codes import FAILED, combined

PHASES = ("Joining", "Running", "Draining", "Closed")


@dataclass(frozen=True, slots=True)
class Part:
    """One process's answer, or why there is none."""

    process: int
    answer: dict[str, Any] | None = None
    error: str = ""


def merged_assignment(parts: Sequence[Part]) -> dict[str, Any]:
    """As one process's /assignment, with the processes listed."""
    answers = [part.answer for part in parts if part.answer is not None]
    complete = len(answers) == len(parts)
    first: dict[str, Any] = answers[0] if answers else {}
    return {
        **_common(parts),
        "phase": earliest_phase([answer["phase"] for answer in answers]),
        "ready": complete and all(answer["ready"] for answer in answers),
        "settled": complete and all(answer["settled"] for answer in answers),
        "strategy": first.get("strategy"),
        "handover": first.get("handover"),
        "members": sorted({member for answer in answers for member in answer["members"]}),
        "queues": _queues(answers),
        "processes": [_process(part, "phase", "ready", "settled") for part in parts],
    }


def merged_drain(parts: Sequence[Part]) -> dict[str, Any]:
    """As one process's /drain. Confirmed only if every process has answered and confirmed."""
    answers = [part.answer for part in parts if part.answer is not None]
    missing = [FAILED] * (len(parts) - len(answers))
    return {
        **_common(parts),
        "phase": "Closed",
        "confirmed": not missing and all(answer["confirmed"] for answer in answers),
        "exitCode": combined([*(answer["exitCode"] for answer in answers), *missing]),
        "seconds": max((answer["seconds"] for answer in answers), default=0.0),
        "queues": _queues(answers),
        "processes": [_process(part, "phase", "confirmed", "exitCode") for part in parts],
    }


def earliest_phase(phases: Sequence[str]) -> str:
    """The phase of several: that of the one least far."""
    return min(phases, key=PHASES.index, default=PHASES[0])


def _common(parts: Sequence[Part]) -> dict[str, Any]:
    answers = [part.answer for part in parts if part.answer is not None]
    return {
        "group": answers[0]["group"] if answers else None,
        "clientIds": [client_id for answer in answers for client_id in answer["clientIds"]],
    }


def _queues(answers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    queues = [queue for answer in answers for queue in answer["queues"]]
    return sorted(queues, key=lambda queue: (queue["topic"], queue["broker"], queue["queueId"], queue["clientId"]))


def _process(part: Part, *names: str) -> dict[str, Any]:
    if part.answer is None:
        return {"process": part.process, "error": part.error}
    return {"process": part.process, "clientId": part.answer["clientId"], **{n: part.answer[n] for n in names}}
