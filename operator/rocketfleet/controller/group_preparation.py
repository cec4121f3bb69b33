"""A group at its brokers, before the first of its pods: its settings, and where it starts.

*Settings.* Only what the manifest says is changed, at each master by itself; whatever else an administrator has set
stays.

*Start offsets* (initialOffset Strict, clustering). A member that finds no offset stored begins where consumeFromWhere
says, at the moment it looks. A LastOffset group whose first pod takes a minute to start would skip that minute. So the
start is written down now. The rules are those of `consumer/start_offset.py`; its "beginning" is written as the queue's
first offset.

An offset that is there is never moved. The broker has no "write if absent", so between our look and our write somebody
could commit; only members commit, so topics that a member subscribes to are left to the members.
"""

import asyncio
import dataclasses
import hashlib
import json
from dataclasses import dataclass

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import ConsumeFromWhere, ConsumeMode, InitialOffset, MessageModel
from rocketfleet.client import admin, broker_groups, broker_members, broker_offsets, fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import ConsumerNotOnline, GroupNotExist
from rocketfleet.consumer.start_offset import Start, start_without_offset
from rocketfleet.wire.bodies import ConsumeFromWhere as WireConsumeFromWhere
from rocketfleet.wire.bodies import SubscriptionGroupConfig
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.setting_values import moment

DEFAULT_RETRIES = 16
_AT_ONCE = 16
_WHERE = {
    ConsumeFromWhere.LAST_OFFSET: WireConsumeFromWhere.LAST_OFFSET,
    ConsumeFromWhere.FIRST_OFFSET: WireConsumeFromWhere.FIRST_OFFSET,
    ConsumeFromWhere.TIMESTAMP: WireConsumeFromWhere.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done."""

    changed: tuple[str, ...] = ()  # brokers whose settings of the group were written
    started: int = 0  # queues whose start offset was written


def preparation_of(group: ConsumerGroup) -> str:
    """A hash of all in the manifest that `prepare` writes: while it is the same, nothing has to be done."""
    spec = group.spec
    content = [
        group.group_name,
        sorted(subscription.topic for subscription in spec.subscriptions),
        spec.message_model.value,
        spec.consume_mode.value,
        spec.consume_from_where.value,
        spec.consume_timestamp,
        spec.initial_offset.value,
        spec.consume.max_reconsume_times,
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]


def wanted_settings(group: ConsumerGroup, there: SubscriptionGroupConfig | None) -> SubscriptionGroupConfig:
    """The group's settings at a broker: those that are there, changed where the manifest says something."""
    spec = group.spec
    retries = spec.consume.max_reconsume_times
    base = SubscriptionGroupConfig(group_name=group.group_name) if there is None else there
    return dataclasses.replace(
        base,
        retry_max_times=DEFAULT_RETRIES if retries < 0 else retries,
        consume_message_orderly=spec.consume_mode is ConsumeMode.ORDERLY,
        consume_broadcast_enable=base.consume_broadcast_enable or spec.message_model is MessageModel.BROADCASTING,
        attributes={},  # those sent along would be read as changes; the broker keeps what it has
    )


async def prepare(client: Client, group: ConsumerGroup) -> Prepared:
    """Write what is missing at all masters. RocketMQError if one of them could not be asked or told."""
    masters = await admin.masters(client)
    answers = await fanout.each(masters, lambda name: _settle_settings(client, masters[name], group))
    changed = tuple(sorted(name for name, wrote in answers.all_or_raise().items() if wrote))
    spec = group.spec
    if spec.initial_offset is not InitialOffset.STRICT or spec.message_model is MessageModel.BROADCASTING:
        return Prepared(changed)
    return Prepared(changed, await _write_start_offsets(client, group))


async def _settle_settings(client: Client, address: str, group: ConsumerGroup) -> bool:
    """Whether something had to be written."""
    try:
        there = await broker_groups.group_config(client.remoting, address, group.group_name)
    except GroupNotExist:
        there = None
    wanted = wanted_settings(group, there)
    if there is not None and wanted == dataclasses.replace(there, attributes={}):
        return False
    await broker_groups.create_group(client.remoting, address, wanted)
    return True


async def _write_start_offsets(client: Client, group: ConsumerGroup) -> int:
    topics = dict.fromkeys(subscription.topic for subscription in group.spec.subscriptions)
    queues = [queue for topic in topics for queue in await client.subscribe_queues(topic)]
    masters = {queue.broker: client.master(queue.broker) for queue in queues}
    asked = await fanout.each(masters, lambda name: _topics_of_members(client, masters[name], group.group_name))
    taken = frozenset(topic for found in asked.all_or_raise().values() for topic in found)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(queue: MessageQueue) -> bool:
        async with gate:
            return await _write_start(client, group, queue)

    wrote = await asyncio.gather(*(one(queue) for queue in queues if queue.topic not in taken))
    return sum(wrote)


async def _topics_of_members(client: Client, address: str, group: str) -> frozenset[str]:
    """What the members that a broker knows of subscribe to."""
    try:
        found = await broker_members.consumer_connections(client.remoting, address, group)
    except ConsumerNotOnline:
        return frozenset()
    return frozenset(found.subscription_table)


async def _write_start(client: Client, group: ConsumerGroup, queue: MessageQueue) -> bool:
    remoting, address, name = client.remoting, client.master(queue.broker), group.group_name
    stored = await broker_offsets.query_offset(remoting, address, name, queue, zero_if_not_found=False)
    if stored is not None:
        return False
    start = start_without_offset(_WHERE[group.spec.consume_from_where], queue.topic)
    if start is Start.BEGINNING:
        offset = max(0, await broker_offsets.min_offset(remoting, address, queue))
    elif start is Start.END:
        offset = await broker_offsets.max_offset(remoting, address, queue)
    else:
        assert group.spec.consume_timestamp is not None  # a rule of the resource
        milliseconds = int(moment(group.spec.consume_timestamp) * 1000)
        offset = await broker_offsets.search_offset(remoting, address, queue, milliseconds)
    await broker_offsets.update_first_offset(remoting, address, name, queue, offset)
    return True
