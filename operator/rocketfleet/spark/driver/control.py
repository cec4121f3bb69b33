"""The control port's questions, put to a driver: the same that a worker answers, and in the same form.

So whoever calls need not know which of the two it talks to: the driver is a member that owns every queue. There is
nothing to rebalance in a group of one; a round is answered with how things stand.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rocketfleet.worker.endpoints import Unavailable
from rocketfleet.worker.snapshot import queue_json

if TYPE_CHECKING:
    from rocketfleet.spark.driver.driver import Driver, Outcome

_DRAIN_MARGIN = 30.0  # seconds beyond the drain's own limit, for the last commits and Spark's end


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

    async def assignment(self) -> dict[str, Any]:
        return described(self._driver)

    async def rebalance(self) -> dict[str, Any]:
        return described(self._driver)

    async def drain(self) -> dict[str, Any]:
        self._driver.stop()
        limit = self._driver.spec.settings.consumer.drain_timeout + _DRAIN_MARGIN
        try:
            async with asyncio.timeout(limit):
                outcome = await asyncio.shield(asyncio.wrap_future(self._driver.outcome))
        except TimeoutError:
            raise Unavailable(f"no result after {limit:g} s: is Spark's JVM stuck?") from None
        return drained(self._driver, outcome)


def described(driver: Driver) -> dict[str, Any]:
    """What /assignment answers."""
    standing = driver.standing
    return {
        "group": driver.spec.settings.group,
        "clientId": driver.client_id,
        "clientIds": [driver.client_id],
        "phase": driver.phase.value,
        "ready": not driver.not_ready(),
        "settled": driver.is_settled,
        "strategy": None,
        "handover": None,
        "members": list(driver.members),
        "queues": [
            {
                **queue_json(queue),
                "clientId": driver.client_id,
                "state": "Owned",
                "offset": standing.done[queue],
                "nextOffset": None,
                "leaseSeconds": None,
                "messages": 0,
                "bytes": 0,
            }
            for queue in driver.owned
        ],
        "progress": progress(driver),
    }


def progress(driver: Driver) -> dict[str, Any]:
    """How the query gets on. What is not known is None."""
    standing = driver.standing
    batch: dict[str, Any] = {} if standing.batch is None else standing.batch.as_json()
    return {**batch, "lost": standing.lost, "executors": standing.executors}


def drained(driver: Driver, outcome: Outcome) -> dict[str, Any]:
    """What /drain answers."""
    return {
        "group": driver.spec.settings.group,
        "clientId": driver.client_id,
        "clientIds": [driver.client_id],
        "phase": driver.phase.value,
        "confirmed": outcome.confirmed,
        "exitCode": outcome.code,
        "seconds": round(outcome.seconds, 3),
        "queues": [
            {
                **queue_json(queue),
                "clientId": driver.client_id,
                "offset": end.offset,
                "confirmed": end.confirmed,
                "unfinished": 0,
            }
            for queue, end in sorted(outcome.final.items())
        ],
    }
