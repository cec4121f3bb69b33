"""What the broker says about the demo's group: who owns which queue, and how far behind it is."""

from dataclasses import dataclass

from rocketfleet.client import admin, broker_members
from rocketfleet.client.client import Client
from rocketfleet.client.errors import RocketMQError
from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True)
class GroupView:
    """`owners` has every queue of the topic, with the members that say they hold it."""

    owners: dict[MessageQueue, list[str]]
    lag: int | None

    def settled_on(self, members: set[str]) -> bool:
        """Each queue has exactly one owner, and the owners are just these members."""
        return (
            all(len(them) == 1 for them in self.owners.values())
            and {them[0] for them in self.owners.values() if them} == members
        )

    def share_of(self, member: str) -> list[int]:
        """The ids of the queues that a member holds."""
        return [queue.queue_id for queue, them in sorted(self.owners.items()) if member in them]


async def look(client: Client, topic: str, group: str) -> GroupView:
    """Ask the broker. Members that come or go in the meantime are left out."""
    queues = await client.subscribe_queues(topic)
    owners: dict[MessageQueue, list[str]] = {queue: [] for queue in queues}
    address = client.master(queues[0].broker)
    try:
        members = await broker_members.consumer_ids(client.remoting, address, group)
    except RocketMQError:
        members = ()
    for member in members:
        try:
            info = await broker_members.running_info(client.remoting, address, group, member, timeout=1.0)
        except RocketMQError:
            continue
        for queue in info.mq_table:
            if queue in owners:
                owners[queue].append(member)
    return GroupView(owners, await _lag(client, topic, group))


async def _lag(client: Client, topic: str, group: str) -> int | None:
    stats = await admin.consume_stats(client, group, topic)
    if stats.errors or not stats.results:
        return None
    tables = [table.offset_table for table in stats.results.values()]
    return sum(max(0, row.broker_offset - row.consumer_offset) for table in tables for row in table.values())
