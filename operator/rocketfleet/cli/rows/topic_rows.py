"""What `rocketfleet topic` shows, made from what brokers and name servers say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rocketfleet.base.counting import counted
from rocketfleet.wire.bodies import PERM_READ, PERM_WRITE
from rocketfleet.wire.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rocketfleet.wire.bodies import TopicConfig, TopicRouteData, TopicStatsTable

MESSAGE_TYPE = "message.type"
SYSTEM_PREFIX = "rmq_sys_"


class TopicRow(TypedDict):
    """A topic over all brokers."""

    topic: str
    kind: str
    type: str
    brokers: int
    read_queues: int
    write_queues: int
    permission: str


class TopicQueueRow(TypedDict):
    """A queue and what is in it."""

    broker: str
    queue: int
    min_offset: int
    max_offset: int
    messages: int
    last_update: int


class RouteRow(TypedDict):
    """A broker that has a topic."""

    broker: str
    cluster: str
    read_queues: int
    write_queues: int
    permission: str
    addresses: list[str]


def kind_of(topic: str, reserved: Collection[str]) -> str:
    """Whose a topic is: the user's, a group's, or RocketMQ's own."""
    if topic.startswith(RETRY_PREFIX):
        return "retry"
    if topic.startswith(DEAD_LETTER_PREFIX):
        return "dead letter"
    return "system" if topic in reserved or topic.lower().startswith(SYSTEM_PREFIX) else "topic"


def perm_text(perm: int) -> str:
    """`RW`, `R-`, `-W` or `--`."""
    return ("R" if perm & PERM_READ else "-") + ("W" if perm & PERM_WRITE else "-")


def describe(config: TopicConfig) -> str:
    """A topic's settings in a few words."""
    queues = f"{counted(config.write_queue_nums, 'queue')} on each broker"
    if config.read_queue_nums != config.write_queue_nums:
        queues += f" to write and {config.read_queue_nums} to read"
    kind = config.attributes.get(MESSAGE_TYPE)
    return queues + (f", {kind}" if kind else "") + (", ordered" if config.order else "")


def same_settings(there: TopicConfig, wanted: TopicConfig) -> bool:
    """Whether a topic is as wanted; attributes that nobody asked about do not count."""
    return (
        there.read_queue_nums == wanted.read_queue_nums
        and there.write_queue_nums == wanted.write_queue_nums
        and there.perm == wanted.perm
        and there.order == wanted.order
        and wanted.attributes.items() <= there.attributes.items()
    )


def list_rows(by_broker: Mapping[str, Mapping[str, TopicConfig]], reserved: Collection[str]) -> list[TopicRow]:
    """One row per topic, its queues summed over the brokers."""
    rows: dict[str, TopicRow] = {}
    for configs in by_broker.values():
        for name, config in configs.items():
            kind = kind_of(name, reserved)
            mode, permission = config.attributes.get(MESSAGE_TYPE, "NORMAL"), perm_text(config.perm)
            row = rows.setdefault(name, TopicRow(
                topic=name, kind=kind, type=mode, brokers=0, read_queues=0, write_queues=0, permission=permission
            ))  # fmt: skip
            row["brokers"] += 1
            row["read_queues"] += config.read_queue_nums
            row["write_queues"] += config.write_queue_nums
            if permission != row["permission"]:
                row["permission"] = "mixed"
    return [rows[name] for name in sorted(rows)]


def queue_rows(by_broker: Mapping[str, TopicStatsTable]) -> list[TopicQueueRow]:
    """One row per queue. What is between its ends is there; whether anybody consumed it is another question."""
    offsets = {queue: offset for stats in by_broker.values() for queue, offset in stats.offset_table.items()}
    return [
        TopicQueueRow(
            broker=queue.broker,
            queue=queue.queue_id,
            min_offset=offsets[queue].min_offset,
            max_offset=offsets[queue].max_offset,
            messages=offsets[queue].max_offset - offsets[queue].min_offset,
            last_update=offsets[queue].last_update_timestamp,
        )
        for queue in sorted(offsets)
    ]


def route_rows(route: TopicRouteData) -> list[RouteRow]:
    """One row per broker; addresses with their broker ids, of which 0 is the master."""
    brokers = {data.broker_name: data for data in route.broker_datas}
    rows = []
    for data in sorted(route.queue_datas, key=lambda data: data.broker_name):
        broker = brokers.get(data.broker_name)
        rows.append(
            RouteRow(
                broker=data.broker_name,
                cluster=broker.cluster if broker else "",
                read_queues=data.read_queue_nums,
                write_queues=data.write_queue_nums,
                permission=perm_text(data.perm),
                addresses=[f"{number}={address}" for number, address in sorted(broker.broker_addrs.items())]
                if broker
                else [],
            )
        )
    return rows
