"""The control port's questions, put to one member that lives on another event loop.

What only looks is read here and now, so it is answered even when the member's loop is stuck. What changes something is
handed to that loop and waited for, within bounds.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rocketfleet.worker.endpoints import Unavailable
from rocketfleet.worker.member import Member, Outcome
from rocketfleet.worker.snapshot import final_json

T = TypeVar("T")
REBALANCE_SECONDS = 15.0
_DRAIN_MARGIN = 30.0  # seconds beyond the drain's own limit, for the last commits and the farewells


class MemberControl:
    """A Control over a member."""

    def __init__(self, member: Member, loop: asyncio.AbstractEventLoop) -> None:
        self._member = member
        self._loop = loop

    async def health(self) -> list[str]:
        return self._member.problems()

    async def readiness(self) -> list[str]:
        return self._member.not_ready()

    async def metrics(self) -> tuple[str, bytes]:
        from rocketfleet.worker import metrics

        member = self._member
        observed = metrics.Observed(
            group=member.spec.settings.group,
            client_id=member.client_id,
            ready=not member.not_ready(),
            members=len(member.members),
            loop_delay=member.loop_delay,
            tally=member.tally,
            durations=member.durations,
            queues=member.queues(),
        )
        return metrics.CONTENT_TYPE, metrics.render(observed)

    async def assignment(self) -> dict[str, Any]:
        return self._member.describe()

    async def rebalance(self) -> dict[str, Any]:
        if not await self._on_loop(self._member.rebalance(), REBALANCE_SECONDS):
            raise Unavailable(
                f"there is nothing to rebalance: the worker is {self._member.phase.value.lower()}", status=409
            )
        return self._member.describe()

    async def drain(self) -> dict[str, Any]:
        self._loop.call_soon_threadsafe(self._member.stop)
        limit = self._member.spec.settings.drain_timeout + _DRAIN_MARGIN
        return drained(self._member, await self._on_loop(self._member.outcome(), limit))

    async def _on_loop(self, coroutine: Coroutine[Any, Any, T], limit: float) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            async with asyncio.timeout(limit):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Unavailable(f"no result after {limit:g} s: is the worker's event loop stuck?") from None


def drained(member: Member, outcome: Outcome) -> dict[str, Any]:
    """What /drain answers."""
    return {
        "group": member.spec.settings.group,
        "clientId": member.client_id,
        "clientIds": [member.client_id],
        "phase": member.phase.value,
        "confirmed": outcome.confirmed,
        "exitCode": outcome.code,
        "seconds": round(outcome.seconds, 3),
        "queues": final_json(outcome.final, member.client_id),
    }
