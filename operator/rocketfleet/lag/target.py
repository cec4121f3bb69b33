"""A group to watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.consumer.offset_storage.start_offset import Start, start_without_offset
from rocketfleet.wire.enums import MessageModel

if TYPE_CHECKING:
    from rocketfleet.api.consumer_group import ConsumerGroup
    from rocketfleet.client.client import Client
    from rocketfleet.wire.enums import ConsumeFromWhere


@dataclass(frozen=True, slots=True)
class Target:
    """`client` is shared by all groups of a RocketMQ cluster, and `cluster` is how metrics and history call that.
    `namespace` and `name` are those of the group's object: metrics tell groups apart by them, so no two have the same.
    """

    client: Client
    group: str
    topics: tuple[str, ...]
    where: ConsumeFromWhere
    broadcast: bool = False
    cluster: str = ""
    namespace: str = ""
    name: str = ""

    def from_beginning(self, topic: str) -> bool:
        """Whether the group will begin a topic at its beginning, where it has no offset."""
        return start_without_offset(self.where, topic) is Start.BEGINNING

    def from_beginning_once_begun(self, topic: str) -> bool:
        """Whether the group will begin new queues of a topic at their beginning, after it has begun with the topic."""
        return start_without_offset(self.where, topic) is Start.END


def target_of(client: Client, group: ConsumerGroup) -> Target:
    """The group of an object. Its cluster is called by its name servers."""
    namespace, name = group.key
    spec = group.spec
    return Target(
        client=client,
        group=group.group_name,
        topics=tuple(dict.fromkeys(subscription.topic for subscription in spec.subscriptions)),
        where=spec.consume_from_where,
        broadcast=spec.message_model is MessageModel.BROADCASTING,
        cluster=";".join(spec.cluster.name_servers),
        namespace=namespace,
        name=name,
    )
