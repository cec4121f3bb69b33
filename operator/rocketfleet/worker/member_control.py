"""The control port's questions, put to one member that lives on another event loop.

What only looks is read here and now, so it is answered even when the member's loop is stuck. What changes something is
handed to that loop and waited for, within bounds.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rocketfleet.control.budget import Margin
from rocketfleet.control.endpoints import Unavailable
from rocketfleet.control.messages import Assignment, DrainReport
from rocketfleet.worker.member import WorkerMember

T = TypeVar("T")
MEMBER_REBALANCE_SECONDS = 15.0


class MemberControl:
    """A Control over a member."""

    def __init__(self, member: WorkerMember, loop: asyncio.AbstractEventLoop) -> None:
        self._member = member
        self._loop = loop

    async def health(self) -> list[str]:
        return self._member.problems()

    async def readiness(self) -> list[str]:
        return self._member.not_ready()

    async def metrics(self) -> tuple[str, bytes]:
        from rocketfleet.worker import metrics

        member = self._member
        observed = metrics.MemberReading(
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

    async def assignment(self) -> Assignment:
        return self._member.assignment()

    async def rebalance(self) -> Assignment:
        if not await self._on_loop(self._member.rebalance(), MEMBER_REBALANCE_SECONDS):
            raise Unavailable(
                f"there is nothing to rebalance: the worker is {self._member.phase.value.lower()}", status=409
            )
        return self._member.assignment()

    async def drain(self) -> DrainReport:
        self._loop.call_soon_threadsafe(self._member.stop)
        settings = self._member.spec.settings
        outcome = await self._on_loop(self._member.outcome(), Margin.CONTROL_CALL.after(settings.drain_timeout))
        return outcome.report(settings.group, self._member.client_id)

    async def _on_loop(self, coroutine: Coroutine[Any, Any, T], limit: float) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            async with asyncio.timeout(limit):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Unavailable(f"no result after {limit:g} s: is the worker's event loop stuck?") from None
