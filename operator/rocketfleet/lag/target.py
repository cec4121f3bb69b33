"""A group to watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.consumer.start_offset import Start, start_without_offset

if TYPE_CHECKING:
    from rocketfleet.client.client import Client
    from rocketfleet.wire.bodies import ConsumeFromWhere


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
