"""Consumer groups at one broker: their configuration, and how far they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.client.requests.calls import Caller, all_pages, ask
from rocketfleet.wire.bodies import (
    ConsumeStats,
    ConsumeTimeSpans,
    QueueTimeSpan,
    SubscriptionGroupConfig,
    SubscriptionGroups,
)
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketfleet.wire.bodies import DataVersion
    from rocketfleet.wire.command import Command

_PAGE: Final = 2000


async def create_group(
    caller: Caller, address: str, group: SubscriptionGroupConfig, *, timeout: float | None = None
) -> None:
    """Create a group, or replace the configuration of the one that is there. Attributes are changes, as for topics."""
    command = request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.encode())
    await ask(caller, address, command, timeout)


async def delete_group(
    caller: Caller, address: str, group: str, *, remove_offsets: bool = False, timeout: float | None = None
) -> None:
    """Delete a group. Its offsets stay, for the day it comes back, unless they are to go too.

    Mind that broker 5.5.0, where it may create groups by itself (autoCreateSubscriptionGroup), creates this one again
    in the same breath if its offsets are to stay: it looks the group up once more after deleting it.
    """
    await ask(
        caller,
        address,
        request(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": group, "cleanOffset": remove_offsets}),
        timeout,
    )


async def group_config(
    caller: Caller, address: str, group: str, *, timeout: float | None = None
) -> SubscriptionGroupConfig:
    """A group's configuration; GroupNotExist if the broker has no such group.

    Mind that a broker that may create groups (autoCreateSubscriptionGroup) does so when asked for one.
    """
    command = request(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": group})
    return (await ask(caller, address, command, timeout)).body(SubscriptionGroupConfig.decode)


async def all_groups(
    caller: Caller, address: str, *, timeout: float | None = None
) -> dict[str, SubscriptionGroupConfig]:
    """All groups of a broker, read page by page."""

    def page(start: int, version: str) -> Command:
        return request(
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            {"groupSeq": start, "maxGroupNum": _PAGE, "dataVersion": version},
        )

    def read(body: bytes) -> tuple[dict[str, SubscriptionGroupConfig], DataVersion | None]:
        found = SubscriptionGroups.decode(body)
        return found.subscription_group_table, found.data_version

    return await all_pages(caller, address, page, read, "totalGroupNum", timeout)


async def consume_stats(
    caller: Caller,
    address: str,
    group: str,
    *,
    topic: str | None = None,
    topics: Sequence[str] = (),
    timeout: float | None = None,
) -> ConsumeStats:
    """How far a group is in each queue of a broker, of one topic, of some, or of all that it has offsets for.

    Unknown looks like known: a group that does not exist gets no error but an empty table, and with a topic given,
    queues without an offset show the consumer at 0. `broker_offsets.query_offset` tells them apart.
    """
    answer = await ask(
        caller,
        address,
        request(
            RequestCode.GET_CONSUME_STATS,
            {"consumerGroup": group, "topic": topic, "topicList": ";".join(topics) or None},
        ),
        timeout,
    )
    return answer.body(ConsumeStats.decode)


async def consume_time_spans(
    caller: Caller, address: str, group: str, topic: str, *, timeout: float | None = None
) -> tuple[QueueTimeSpan, ...]:
    """When the oldest, the newest and the last consumed message of each queue were stored, and the delay that makes."""
    answer = await ask(
        caller, address, request(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": topic, "group": group}), timeout
    )
    return answer.body(ConsumeTimeSpans.decode).consume_time_span_set
