"""What the broker says about the demo's group: who owns which queue, and how far behind it is."""

from collections.abc import Collection
from dataclasses import dataclass

from rocketfleet.client.client import Client
from rocketfleet.group.at_brokers import GroupAtBrokers, owners_of
from rocketfleet.lag.collecting.reckoning import lag_of, summed
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
    place = GroupAtBrokers(client, group, [topic])
    queues, masters = await place.queues(), await place.masters()
    ids = await place.member_ids(masters)
    holdings = await place.holdings(
        {member for found in ids.results.values() for member in found}, masters, timeout=1.0
    )
    found = owners_of(holdings.results)
    return GroupView({queue: found.get(queue, []) for queue in queues}, await _lag(place, queues))


async def _lag(place: GroupAtBrokers, queues: Collection[MessageQueue]) -> int | None:
    read = await place.read(queues)
    if read.errors:
        return None
    # The manifest says FirstOffset.
    return summed(lag_of(read.committed[queue], read.ends[queue], from_beginning=True) for queue in queues)
