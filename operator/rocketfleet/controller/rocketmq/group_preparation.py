"""A group at its brokers, before the first of its pods and ever after: its settings, and where it starts.

`look` reads what the brokers have of it, `prepare` writes what they lack; `preparation.py` says what that is. Only
brokers that have the group's topics are asked.

*Settings.* Only what the manifest says is changed, at each master by itself; whatever else an administrator has set
stays.

*Where it starts* (initialOffset Strict, clustering). A LastOffset group begins with its first member, and one whose
first pod takes a minute to start would skip that minute. So the beginning is stored now, by the same rules and under
the same lock as members have (`consumer/offset_storage/beginning.py`); for that the group's retry topic has to be
there, which the broker makes only when a member joins. Once a group has begun, queues without an offset are new, and
start where its members would start them.

Groups that start elsewhere have the same start whenever it is looked up. Starts are written down, so that lag can be
told before the first pod runs and a group at zero is woken by what comes to a new queue; an offset that is there is
never moved. The broker has no "write if absent", so between our look and our write somebody could commit; only members
commit, so topics that a member subscribes to are left to the members.
"""

import asyncio
import random as random_numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.client import fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import (
    ConnectError,
    ConnectionLost,
    GroupNotExist,
    NoBroker,
    NoRoute,
    RequestTimeout,
    ResponseError,
    RocketMQError,
    TopicNotExist,
)
from rocketfleet.client.requests import broker_groups, broker_offsets, broker_topics
from rocketfleet.consumer.offset_storage.beginning import Beginnings, decode_mark, mark_queue
from rocketfleet.consumer.offset_storage.start_offset import Start, start_without_offset
from rocketfleet.controller.planning.preparation import (
    BrokerFindings,
    Found,
    GroupBroker,
    Lack,
    has_beginning,
    has_start_offsets,
    lack_of,
    next_look,
    preparation_of,
    topics_of,
    wanted_settings,
)
from rocketfleet.group.at_brokers import GroupAtBrokers
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX
from rocketfleet.worker.configuration.setting_values import moment

BROKER_READ_SECONDS = 5.0  # for all that is read at one broker
AWAY = (ConnectError, ConnectionLost, RequestTimeout, NoBroker)  # it does not answer; whatever else it says counts


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done."""

    changed: tuple[str, ...] = ()  # brokers whose settings of the group were written
    started: int = 0  # queues whose start offset was written
    away: tuple[str, ...] = ()  # brokers that did not answer


# -- looking ----------------------------------------------------------------------------------------------------------


async def look(
    client: Client,
    group: ConsumerGroup,
    places: Mapping[str, GroupBroker],
    brokers: Iterable[str],
    now: float,
    random: Callable[[], float] = random_numbers.random,
) -> dict[str, BrokerFindings]:
    """Ask these of the group's brokers what they have of it."""
    wanted = preparation_of(group)
    seen: dict[str, GroupBroker] = {}

    async def read(broker: str) -> Found:
        place = seen[broker] = places[broker]
        if place.address is None:
            raise NoBroker(broker, "it has no master now")
        try:
            async with asyncio.timeout(BROKER_READ_SECONDS):
                await client.remoting.connect(place.address)
                # What is read belongs to this connection: should it break meanwhile, all of it is read again.
                seen[broker] = replace(place, connection=client.remoting.connection_number(place.address))
                return await _find(client, group, broker, place.address, place.queues)
        except TimeoutError as error:
            if isinstance(error, RocketMQError):
                raise
            raise ConnectError(place.address, f"no answer within {BROKER_READ_SECONDS:g} s") from error

    answers = await fanout.each(brokers, read)
    for error in answers.errors.values():
        if not isinstance(error, (*AWAY, ResponseError)):
            raise error
    lacks = {broker: lack_of(group, found) for broker, found in answers.results.items()}
    taken = frozenset[str]()
    if any(lack.beginnings or lack.starts for lack in lacks.values()):
        masters = {broker: place.address for broker, place in places.items() if place.address is not None}
        taken = await _taken_topics(client, group.group_name, masters)
    looks = {}
    for broker, place in seen.items():
        if isinstance(answers.errors.get(broker), AWAY):
            looks[broker] = BrokerFindings(place, wanted, next_look(now, answered=False, random=random))
            continue
        # What a broker refuses to say is told by the attempt to prepare it.
        found = answers.results.get(broker)
        lack = Lack(settings=True) if found is None else lack_of(group, found, taken)
        left = found is not None and lack != lacks[broker]
        again = next_look(now, answered=True, random=random)
        looks[broker] = BrokerFindings(place, wanted, again, lacks=bool(lack), left=left)
    return looks


async def _find(
    client: Client, group: ConsumerGroup, broker: str, address: str, queues: frozenset[MessageQueue]
) -> Found:
    remoting, name = client.remoting, group.group_name
    try:
        settings = await broker_groups.group_config(remoting, address, name)
    except GroupNotExist:
        return Found(None, unset=queues)
    if not has_start_offsets(group):
        return Found(settings)

    async def stored(queue: MessageQueue) -> int | None:
        return await broker_offsets.query_offset(remoting, address, name, queue, zero_if_not_found=False)

    topics = topics_of(group) if has_beginning(group) else ()
    marks = await fanout.bounded(topics, lambda topic: stored(mark_queue(name, topic, broker)))
    begun = frozenset(topic for topic, mark in marks.items() if decode_mark(mark) is not None)
    offsets = await fanout.bounded(queues, stored)
    unset = frozenset(queue for queue, offset in offsets.items() if offset is None)
    return Found(settings, begun, unset)


async def _taken_topics(client: Client, group: str, masters: Mapping[str, str]) -> frozenset[str]:
    """What members that are there subscribe to, whatever their language: they may commit at any moment. Members are
    known to all brokers of their topics, so that those that do not answer need not.
    """
    asked = await GroupAtBrokers(client, group).connections(masters)
    return frozenset(topic for found in asked.some_or_raise().values() for topic in found.subscription_table)


# -- writing ----------------------------------------------------------------------------------------------------------


async def prepare(client: Client, group: ConsumerGroup, masters: Mapping[str, str]) -> Prepared:
    """Write what is missing at the masters given, by broker name. RocketMQError if one refuses, or none answers."""
    answers = await fanout.each(masters, lambda name: _settle_settings(client, masters[name], group))
    here = {name: masters[name] for name in _answering(answers)}
    changed = tuple(sorted(name for name, wrote in answers.results.items() if wrote))
    away = tuple(sorted(masters.keys() - here.keys()))
    if not has_start_offsets(group):
        return Prepared(changed, away=away)
    taken = await _taken_topics(client, group.group_name, here)
    topics = [topic for topic in topics_of(group) if topic not in taken]
    beginnings = Beginnings(client, group.group_name, brokers=here)
    if has_beginning(group):
        await _begin(client, group, topics, beginnings, here)
    started = await _write_starts(client, group, topics, beginnings, here)
    return Prepared(changed, beginnings.started + started, away)


def _answering(answers: fanout.Partial[bool]) -> list[str]:
    """Those that answer. An error if one refuses, or if there is none."""
    for error in answers.errors.values():
        if not isinstance(error, AWAY):
            raise error
    return list(answers.some_or_raise())


async def _settle_settings(client: Client, address: str, group: ConsumerGroup) -> bool:
    """Whether something had to be written."""
    try:
        there = await broker_groups.group_config(client.remoting, address, group.group_name)
    except GroupNotExist:
        there = None
    if not lack_of(group, Found(there)).settings:
        return False
    await broker_groups.create_group(client.remoting, address, wanted_settings(group, there))
    return True


async def _begin(
    client: Client, group: ConsumerGroup, topics: list[str], beginnings: Beginnings, masters: Mapping[str, str]
) -> None:
    """Store where the group begins, or when it has begun where that is not known yet."""
    retry = TopicConfig(topic_name=RETRY_PREFIX + group.group_name, read_queue_nums=1, write_queue_nums=1)

    async def provide_retry_topic(address: str) -> bool:
        try:
            await broker_topics.topic_config(client.remoting, address, retry.topic_name)
        except TopicNotExist:
            await broker_topics.create_topic(client.remoting, address, retry)
        return True

    _answering(await fanout.each(masters, lambda broker: provide_retry_topic(masters[broker])))
    found = await fanout.each(topics, client.subscribe_queues)
    missing = [error for error in found.errors.values() if isinstance(error, NoRoute)]
    if topics and len(missing) == len(topics):  # of several, some may come later: the others are consumed
        raise missing[0]
    await beginnings.ensure_all(topics)


async def _write_starts(
    client: Client, group: ConsumerGroup, topics: list[str], beginnings: Beginnings, masters: Mapping[str, str]
) -> int:
    """Write where queues start that have no offset; how many there were."""
    found = (await fanout.each(topics, client.subscribe_queues)).some_or_raise()
    queues = [queue for each in found.values() for queue in each if queue.broker in masters]
    written = 0
    for turn in in_turns(queues):
        done = await fanout.bounded(turn, lambda queue: _write_start(client, group, queue, beginnings))
        written += sum(done.values())
    return written


def in_turns(queues: Iterable[MessageQueue]) -> tuple[list[MessageQueue], list[MessageQueue]]:
    """One queue of each topic at each broker, and then all others.

    A 5.5.0 broker makes the table of a group's offsets in a topic without a lock: of two first offsets that are stored
    at the same time it may lose one, even after that was read back. With one ahead, the others find a table.
    """
    ahead: dict[tuple[str, str], MessageQueue] = {}
    rest = [queue for queue in queues if ahead.setdefault((queue.broker, queue.topic), queue) is not queue]
    return list(ahead.values()), rest


async def _write_start(client: Client, group: ConsumerGroup, queue: MessageQueue, beginnings: Beginnings) -> bool:
    remoting, address, name = client.remoting, client.master(queue.broker), group.group_name
    if await broker_offsets.query_offset(remoting, address, name, queue, zero_if_not_found=False) is not None:
        return False
    start = start_without_offset(group.spec.consume_from_where, queue.topic)
    if start is Start.BEGINNING:
        offset = max(0, await broker_offsets.min_offset(remoting, address, queue))
    elif start is Start.END:
        since = await beginnings.start(queue)
        if since is None:
            return False
        offset = since
    else:
        assert group.spec.consume_timestamp is not None  # a rule of the resource
        milliseconds = int(moment(group.spec.consume_timestamp) * 1000)
        offset = await broker_offsets.search_offset(remoting, address, queue, milliseconds)
    await broker_offsets.update_first_offset(remoting, address, name, queue, offset)
    return True
