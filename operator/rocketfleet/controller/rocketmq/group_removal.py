"""Removing a group at its brokers: in its own cluster, after a last look at who is in it, and not more than was asked.

A name server may know several clusters. A group's own are those of the brokers that have its topics; a group of the
same name in another cluster is somebody else's.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from rocketfleet.base.counting import counted
from rocketfleet.client import admin, fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError, TopicNotExist
from rocketfleet.client.requests import broker_offsets, broker_topics
from rocketfleet.group.at_brokers import GroupAtBrokers
from rocketfleet.lag.collecting.reckoning import lag_of
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a group leaves behind beside its offsets. Retries are those not yet consumed; what still waits for its delay
    is in the broker's own schedule, and not counted.
    """

    retries: int = 0
    dead_letters: int = 0


Confirm = Callable[[Leftovers], Awaitable[None]]


async def remove_group(
    client: Client, group: str, brokers: Iterable[str], confirm: Confirm, *, topics_too: bool
) -> None:
    """Remove the group's settings and offsets, and with `topics_too` its retry and dead letter topics, at all masters
    of the clusters of these brokers. `confirm` is told first what is there, and may raise. RocketMQError if somebody is
    in the group, or it is not gone everywhere.
    """
    clusters = sorted({client.brokers.clusters[broker] for broker in brokers})
    tables = {cluster: await admin.masters(client, cluster) for cluster in clusters}
    masters = {name: address for table in tables.values() for name, address in table.items()}
    await confirm(await leftovers(client, group, masters))
    await _nobody_is_in(client, group, masters)
    for cluster in clusters:
        (await admin.delete_group(client, group, cluster, remove_offsets=True, remove_topics=topics_too)).all_or_raise()


async def leftovers(client: Client, group: str, masters: Mapping[str, str]) -> Leftovers:
    """What lies in the group's retry and dead letter topics at these masters."""

    async def count(name: str) -> Leftovers:
        address = masters[name]
        retries = 0
        for number, (first, end) in (await _ends(client, address, RETRY_PREFIX + group)).items():
            queue = MessageQueue(RETRY_PREFIX + group, name, number)
            stored = await broker_offsets.query_offset(client.remoting, address, group, queue, zero_if_not_found=False)
            retries += lag_of(stored, (first, end), from_beginning=True) or 0
        dead = await _ends(client, address, DEAD_LETTER_PREFIX + group)
        return Leftovers(retries, sum(end - first for first, end in dead.values()))

    found = (await fanout.each(masters, count)).all_or_raise().values()
    return Leftovers(sum(one.retries for one in found), sum(one.dead_letters for one in found))


def removal(group: str, left: Leftovers, *, offsets_too: bool = True, topics_too: bool) -> str:
    """What is about to be removed, and what is not."""
    retries = counted(left.retries, "message that waits for a retry", "messages that wait for a retry")
    letters = counted(left.dead_letters, "dead letter")
    if topics_too:
        return (
            f"the group {group}, its offsets, its retry and dead letter topics are deleted: {retries} and {letters} go"
        )
    text = f"the group {group} and its offsets are deleted" if offsets_too else f"the group {group} is deleted"
    if left.dead_letters:
        text += f"; {letters} {_stay(left.dead_letters)} in {DEAD_LETTER_PREFIX}{group}"
    if left.retries:
        stay = f"{retries} {_stay(left.retries)} in {RETRY_PREFIX}{group}"
        text += f"; {stay}, where a later group of this name finds {'it' if left.retries == 1 else 'them'}"
    return text


def _stay(number: int) -> str:
    return "stays" if number == 1 else "stay"


async def _ends(client: Client, address: str, topic: str) -> dict[int, tuple[int, int]]:
    try:
        return await broker_topics.queue_ends(client.remoting, address, topic)
    except TopicNotExist:
        return {}


async def _nobody_is_in(client: Client, group: str, masters: Mapping[str, str]) -> None:
    """Asked just before the removal: what was seen when it was decided may be a minute old."""
    members = sorted(await GroupAtBrokers(client, group).members(masters))
    if members:
        raise RocketMQError(
            f"{counted(len(members), 'member is', 'members are')} in the group {group} again, {members[0]} among them"
        )
