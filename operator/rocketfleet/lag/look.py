"""One look at one group, for somebody who asks now and goes: a command.

It is one sweep of the collector (`monitor.py`) over one group: the same questions, put together by the same rules, so
that a command and the group's status tell the same lag. Two things differ: who did not answer is told to the caller and
not to a log, and the queues of retries are shown one by one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rocketfleet.client.errors import NoRoute
from rocketfleet.client.fanout import Partial, each
from rocketfleet.lag.collecting.assembly import assemble, retry_rows
from rocketfleet.lag.collecting.broadcast import read_broadcast
from rocketfleet.lag.collecting.broker_reading import BrokerMemory, read_within
from rocketfleet.lag.collecting.layout import ClusterTopics, wanted_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.client.errors import RocketMQError
    from rocketfleet.lag.figures import GroupLag, QueueLag
    from rocketfleet.lag.target import Target


@dataclass(frozen=True, slots=True)
class ObservedLag:
    """What was seen, and who did not answer: brokers and topics by their names."""

    moment: GroupLag
    retries: tuple[QueueLag, ...] = ()
    errors: dict[str, RocketMQError] = field(default_factory=dict)


async def look(target: Target, *, patience: float | None = None, clock: Callable[[], float] = time.time) -> ObservedLag:
    """The group's lag now, as far as it can be told in `patience` seconds per broker. Owners of queues are not asked
    for. RocketMQError if neither name servers nor brokers say anything.
    """
    client, timeout, at = target.client, target.client.config.timeout, clock()
    routes = await each(target.topics, client.route)
    for error in routes.errors.values():
        if not isinstance(error, NoRoute):
            raise error
    cluster = ClusterTopics(client)
    trouble = await cluster.refresh([target], timeout)
    errors = {**routes.errors, **({} if trouble is None else {"name servers": trouble})}
    layout = cluster.of(target)
    if target.broadcast:
        moment = await read_broadcast(
            target, layout, {}, at, clock=clock, timeout=timeout, patience=patience
        )  # fmt: skip
        return ObservedLag(moment, errors=errors)
    wanted = wanted_of([(target, layout, True)])
    found = await each(
        wanted,
        lambda broker: read_within(
            patience, client, broker, wanted[broker], BrokerMemory(), clock=clock, timeout=timeout
        ),
    )
    readings = found.results
    failed = {broker: reading.error for broker, reading in readings.items() if reading.error is not None}
    Partial({broker: one for broker, one in readings.items() if one.offsets or one.ends}, failed).some_or_raise()
    return ObservedLag(
        assemble(target, layout, readings, None, {}, at),
        retry_rows(target, layout, readings, {}),
        {**errors, **failed},
    )
