"""The one collector: every group of every cluster, one sweep after another."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.lag.window import Window

if TYPE_CHECKING:
    from rocketfleet.client.client import Client
    from rocketfleet.lag.figures import GroupLag
    from rocketfleet.lag.rules import GroupVerdict, Verdict
    from rocketfleet.wire.bodies import ConsumeFromWhere
    from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Target:
    """A group to watch. `namespace` and `name` are those of its object, by which metrics tell groups apart; `cluster`
    is how metrics and history call the RocketMQ cluster; `client` is shared by all groups of a cluster.
    """

    client: Client
    group: str
    topics: tuple[str, ...]
    where: ConsumeFromWhere
    broadcast: bool = False
    cluster: str = ""
    namespace: str = ""
    name: str = ""


class LagMonitor:
    """See the module."""

    def follow(self, key: Hashable, target: Target) -> None:
        """Watch a group, or go on with another target; the window stays unless the group is another one."""
        raise NotImplementedError

    def forget(self, key: Hashable) -> None:
        """Watch it no more. Its figures are gone at once."""
        raise NotImplementedError

    def latest(self, key: Hashable) -> GroupLag | None:
        """The last figures; None before the first."""
        raise NotImplementedError

    def window(self, key: Hashable) -> Window:
        """The last minutes; empty before the first figures."""
        raise NotImplementedError

    def verdict(self, key: Hashable) -> GroupVerdict:
        """What the rules say of the window."""
        raise NotImplementedError

    def verdicts(self, key: Hashable) -> tuple[Verdict, ...]:
        """All findings, the worst first."""
        return self.verdict(key).verdicts

    def note_owners(self, key: Hashable, owners: Mapping[MessageQueue, str]) -> None:
        """Who has which queue, as far as somebody knows: client ids."""
        raise NotImplementedError

    def note_reset(self, key: Hashable, now: float) -> None:
        """The group's offsets were moved on purpose: nothing before is held against it."""
        raise NotImplementedError

    async def sweep(self) -> None:
        """Look at all groups once."""
        raise NotImplementedError

    async def run(self) -> None:
        """Sweep after sweep, until cancelled."""
        raise NotImplementedError
