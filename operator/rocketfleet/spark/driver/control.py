"""The control port's questions, put to a driver: the same that a worker answers, and in the same form.

So whoever calls need not know which of the two it talks to: the driver is a member that owns every queue. There is
nothing to rebalance in a group of one; a round is answered with how things stand.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from rocketfleet.control.budget import Margin
from rocketfleet.control.endpoints import Unavailable
from rocketfleet.control.messages import Assignment, DrainReport, QueryProgress, QueueReport, QueueState

if TYPE_CHECKING:
    from rocketfleet.spark.driver.driver import Driver


class DriverControl:
    """A Control over a driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def health(self) -> list[str]:
        return self._driver.problems()

    async def readiness(self) -> list[str]:
        return self._driver.not_ready()

    async def metrics(self) -> tuple[str, bytes]:
        from rocketfleet.spark.driver import metrics

        return metrics.CONTENT_TYPE, metrics.render(self._driver)

    async def assignment(self) -> Assignment:
        return assignment_of(self._driver)

    async def rebalance(self) -> Assignment:
        return assignment_of(self._driver)

    async def drain(self) -> DrainReport:
        self._driver.stop()
        settings = self._driver.spec.settings
        limit = Margin.CONTROL_CALL.after(settings.consumer.drain_timeout)
        try:
            async with asyncio.timeout(limit):
                outcome = await asyncio.shield(asyncio.wrap_future(self._driver.outcome))
        except TimeoutError:
            raise Unavailable(f"no result after {limit:g} s: is Spark's JVM stuck?") from None
        return outcome.report(settings.group, self._driver.client_id)


def assignment_of(driver: Driver) -> Assignment:
    """What /assignment answers."""
    standing, me = driver.standing, driver.client_id
    return Assignment(
        client_ids=(me,),
        phase=driver.phase,
        ready=not driver.not_ready(),
        settled=driver.is_settled,
        members=tuple(driver.members),
        queues=tuple(QueueReport(queue, me, QueueState.OWNED, standing.done[queue]) for queue in driver.owned),
        progress=progress_of(driver),
        group=driver.spec.settings.group,
    )


def progress_of(driver: Driver) -> QueryProgress:
    """How the query gets on."""
    standing = driver.standing
    batch = QueryProgress() if standing.batch is None else standing.batch.report()
    return replace(batch, lost=standing.lost, executors=standing.executors)
