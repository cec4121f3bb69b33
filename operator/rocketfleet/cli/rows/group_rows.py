"""What `rocketfleet group` shows, made from what brokers say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rocketfleet.base.counting import counted
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocketfleet.cli.rows.lag_rows import LagRow
    from rocketfleet.wire.bodies import ConsumerConnection, OffsetWrapper, SubscriptionGroupConfig

SYSTEM_PREFIX = "CID_RMQ_SYS_"
_V4_0_0_SNAPSHOT = 212  # the ordinal of Java's MQVersion
SYSTEM_GROUPS = frozenset(
    {
        "DEFAULT_CONSUMER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER", "__MONITOR_CONSUMER",
        "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL",
        "CID_DefaultHeartBeatSyncerTopic",
    }
)  # fmt: skip


class BrokerGroupRow(TypedDict):
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
    version: str


class GroupQueueRow(TypedDict):
    """A group's place in a queue; None is not known, in `consumer_offset` also none stored. `consumed_up_to` is when
    the message that it consumed last was stored, 0 if that is not known.
    """

    topic: str
    broker: str
    queue: int
    broker_offset: int | None
    consumer_offset: int | None
    lag: int | None
    consumed_up_to: int
    member: list[str]


def is_system(group: str) -> bool:
    """Whether a group is one of RocketMQ's own."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_PREFIX)


def describe(config: SubscriptionGroupConfig) -> str:
    """A group's settings in a few words."""
    parts = [
        "orderly" if config.consume_message_orderly else "concurrent",
        counted(config.retry_max_times, "retry", "retries"),
    ]
    if not config.consume_broadcast_enable:
        parts.append("no broadcast")
    if not config.consume_enable:
        parts.append("disabled")
    return ", ".join(parts)


def same_settings(there: SubscriptionGroupConfig, changes: Mapping[str, object]) -> bool:
    """Whether a group has the settings that were named."""
    return all(getattr(there, name) == value for name, value in changes.items())


def group_rows(by_broker: Mapping[str, Mapping[str, SubscriptionGroupConfig]]) -> list[BrokerGroupRow]:
    """One row per group."""
    rows: dict[str, BrokerGroupRow] = {}
    for configs in by_broker.values():
        for name, config in configs.items():
            if name in rows:
                rows[name]["brokers"] += 1
                continue
            rows[name] = BrokerGroupRow(
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
    """One row per client, whichever brokers it is connected to."""
    members = {member.client_id: member for found in by_broker.values() for member in found.connection_set}
    return [
        MemberRow(
            client_id=client_id,
            address=members[client_id].client_addr,
            language=members[client_id].language,
            version=version_name(members[client_id].version),
        )
        for client_id in sorted(members)
    ]


def version_name(number: int) -> str:
    """A client's version as Java names it, V5_5_0: since 4.0.0 each has its number, after that of its snapshot."""
    since = number - _V4_0_0_SNAPSHOT
    if since < 0:
        return str(number)
    major, rest = divmod(since, 200)
    minor, patch = divmod(rest // 2, 10)
    return f"V{4 + major}_{minor}_{patch}" + ("" if since % 2 else "_SNAPSHOT")


def queue_rows(rows: Iterable[LagRow], progress: Mapping[MessageQueue, OffsetWrapper]) -> list[GroupQueueRow]:
    """One row per queue. Of what the broker makes of the group's progress (consume stats) only the time is shown: its
    offsets have 0 for "none stored", and its lag counts messages that are gone.
    """
    return [
        GroupQueueRow(
            topic=row["topic"],
            broker=row["broker"],
            queue=row["queue"],
            broker_offset=row["max_offset"],
            consumer_offset=row["committed"],
            lag=row["lag"],
            consumed_up_to=0 if at is None else at.last_timestamp,
            member=row["owner"],
        )
        for row in rows
        for at in [progress.get(MessageQueue(row["topic"], row["broker"], row["queue"]))]
    ]
