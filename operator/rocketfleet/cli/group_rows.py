"""What `rocketfleet group` shows, made from what brokers say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocketfleet.wire.bodies import ConsumerConnection, OffsetWrapper, SubscriptionGroupConfig, TopicStatsTable
    from rocketfleet.wire.queue import MessageQueue

SYSTEM_PREFIX = "CID_RMQ_SYS_"
SYSTEM_GROUPS = frozenset(
    {
        "DEFAULT_CONSUMER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER", "__MONITOR_CONSUMER",
        "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL",
        "CID_DefaultHeartBeatSyncerTopic",
    }
)  # fmt: skip


class GroupRow(TypedDict):
    """A group over all brokers; where they differ, the first one's settings."""

    group: str
    system: bool
    brokers: int
    enabled: bool
    orderly: bool
    broadcast: bool
    max_retries: int


class MemberRow(TypedDict):
    """A connected client of a group."""

    client_id: str
    address: str
    language: str
    version: int


class QueueRow(TypedDict):
    """A group's place in a queue."""

    topic: str
    broker: str
    queue: int
    broker_offset: int
    consumer_offset: int
    lag: int
    last_consumed: int
    member: list[str]


def is_system(group: str) -> bool:
    """Whether a group is one of RocketMQ's own."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_PREFIX)


def describe(config: SubscriptionGroupConfig) -> str:
    """A group's settings in a few words."""
    parts = ["orderly" if config.consume_message_orderly else "concurrent", f"{config.retry_max_times} retries"]
    if not config.consume_broadcast_enable:
        parts.append("no broadcast")
    if not config.consume_enable:
        parts.append("disabled")
    return ", ".join(parts)


def same_settings(there: SubscriptionGroupConfig, changes: Mapping[str, object]) -> bool:
    """Whether a group has the settings that were named."""
    return all(getattr(there, name) == value for name, value in changes.items())


def group_rows(by_broker: Mapping[str, Mapping[str, SubscriptionGroupConfig]]) -> list[GroupRow]:
    """One row a group."""
    rows: dict[str, GroupRow] = {}
    for configs in by_broker.values():
        for name, config in configs.items():
            if name in rows:
                rows[name]["brokers"] += 1
                continue
            rows[name] = GroupRow(
                group=name,
                system=is_system(name),
                brokers=1,
                enabled=config.consume_enable,
                orderly=config.consume_message_orderly,
                broadcast=config.consume_broadcast_enable,
                max_retries=config.retry_max_times,
            )
    return [rows[name] for name in sorted(rows)]


def member_rows(by_broker: Mapping[str, ConsumerConnection]) -> list[MemberRow]:
    """One row a client, whichever brokers it is connected to."""
    members = {member.client_id: member for found in by_broker.values() for member in found.connection_set}
    return [
        MemberRow(
            client_id=client_id,
            address=members[client_id].client_addr,
            language=members[client_id].language,
            version=members[client_id].version,
        )
        for client_id in sorted(members)
    ]


def owners_of(by_member: Mapping[str, Iterable[MessageQueue] | None]) -> dict[MessageQueue, list[str]]:
    """Who says that it has a queue. More than one is possible for a moment, and worth seeing."""
    owners: dict[MessageQueue, list[str]] = {}
    for member in sorted(by_member):
        for queue in by_member[member] or ():
            owners.setdefault(queue, []).append(member)
    return owners


def queue_rows(
    progress: Mapping[MessageQueue, OffsetWrapper],
    topics: Iterable[TopicStatsTable],
    owners: Mapping[MessageQueue, list[str]],
) -> list[QueueRow]:
    """One row a queue. The ends come from the topic where they are known: they were read after the group's offsets."""
    ends = {queue: end for table in topics for queue, end in table.offset_table.items()}
    rows = []
    for queue in sorted(progress):
        at, end = progress[queue], ends.get(queue)
        newest = max(at.broker_offset, end.max_offset) if end else at.broker_offset
        oldest = end.min_offset if end else 0
        rows.append(
            QueueRow(
                topic=queue.topic,
                broker=queue.broker,
                queue=queue.queue_id,
                broker_offset=newest,
                consumer_offset=at.consumer_offset,
                lag=max(0, newest - max(at.consumer_offset, oldest)),
                last_consumed=at.last_timestamp,
                member=owners.get(queue, []),
            )
        )
    return rows


def lag_of(rows: Iterable[QueueRow]) -> int:
    """Messages that wait."""
    return sum(row["lag"] for row in rows)
