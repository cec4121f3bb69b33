"""Calls to the control ports of workers, wherever they run: what do you hold, share out anew, drain.

Each call is one connection, bounded in time and in the size of its answer. Whatever goes wrong is a CallFailed with a
sentence; whether that matters is for the caller to decide.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocketfleet.api.status import SparkProgress
from rocketfleet.controller.snapshot import DrainOutcome
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.http_call import CallFailed, call
from rocketfleet.worker.last_words import from_answer

LOOK_SECONDS = 2.0
REBALANCE_SECONDS = 20.0
DRAIN_MARGIN = 40.0  # seconds beyond the handlers' time; the worker itself gives up earlier, and says so
# Of a queue on its way to another member (Leaving, Settling) nothing more is begun; one that is Wanted is not ours yet.
_OWNING = frozenset({"Owned", "Suspended", "ConfirmedOnce"})


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker says it holds."""

    client_ids: tuple[str, ...]
    phase: str
    ready: bool
    settled: bool
    members: frozenset[str]  # the group as this worker sees it
    owners: Mapping[MessageQueue, frozenset[str]]  # its own queues, by which of its members
    progress: SparkProgress | None = None  # of a driver's query

    @property
    def joined(self) -> bool:
        return self.phase == "Running"


class WorkerCalls:
    """The three calls, to anybody's `host:port`."""

    async def assignment(self, address: str, token: str | None, limit: float = LOOK_SECONDS) -> Assignment:
        answer = await self._ask(address, "GET", "/assignment", token, limit)
        try:
            return _assignment(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise CallFailed(f"/assignment of {address} is not what a worker answers: {error!r}") from error

    async def rebalance(self, address: str, token: str | None, limit: float = REBALANCE_SECONDS) -> None:
        """Have it do a round now."""
        await self._ask(address, "POST", "/rebalance", token, limit)

    async def drain(self, address: str, token: str | None, limit: float) -> DrainOutcome:
        """Drain it; returns when it has, with the offsets it reached."""
        answer = await self._ask(address, "POST", "/drain", token, limit)
        try:
            words = from_answer(answer)
            return DrainOutcome(words.confirmed, words.offsets, float(answer["seconds"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CallFailed(f"/drain of {address} is not what a worker answers: {error!r}") from error

    async def ready(self, address: str, limit: float = LOOK_SECONDS) -> bool:
        """Whether it says that it is ready. One that does not answer is not."""
        try:
            return (await call(address, "GET", "/readyz", None, limit)).status == 200
        except CallFailed:
            return False

    async def _ask(self, address: str, method: str, path: str, token: str | None, limit: float) -> Mapping[str, Any]:
        response = await call(address, method, path, token, limit)
        if response.status != 200:
            words = response.body.decode("utf-8", "replace").strip()[:500]
            raise CallFailed(f"{path} of {address} answered {response.status}: {words}")
        try:
            answer = json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise CallFailed(f"{path} of {address} did not answer JSON") from error
        if not isinstance(answer, dict):
            raise CallFailed(f"{path} of {address} did not answer a JSON object")
        return answer


def _assignment(answer: Mapping[str, Any]) -> Assignment:
    owners: dict[MessageQueue, set[str]] = {}
    for entry in answer["queues"]:
        if entry["state"] in _OWNING:
            queue = MessageQueue(entry["topic"], entry["broker"], int(entry["queueId"]))
            owners.setdefault(queue, set()).add(str(entry["clientId"]))
    return Assignment(
        client_ids=tuple(answer["clientIds"]),
        phase=str(answer["phase"]),
        ready=bool(answer["ready"]),
        settled=bool(answer["settled"]),
        members=frozenset(answer["members"]),
        owners={queue: frozenset(them) for queue, them in owners.items()},
        progress=_progress(answer.get("progress")),
    )


def _progress(given: object) -> SparkProgress | None:
    """What a driver says of its query. ValueError if it makes no sense."""
    if not isinstance(given, dict):
        return None
    known = {field.alias or name for name, field in SparkProgress.model_fields.items()}
    return SparkProgress.model_validate({name: value for name, value in given.items() if name in known})
