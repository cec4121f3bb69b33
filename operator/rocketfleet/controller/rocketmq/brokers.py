"""The controller's access to RocketMQ: one client for each connection, shared by all groups that use it.

A group *holds* a client as long as it is looked after; the last one that lets go closes it. When a Secret is rotated
the connection's settings change, so the group moves to another client, and the old one is closed behind it.

What is asked about one group is `GroupBrokers`: `group/at_brokers.py` in the controller's words. It never decides: an
error is raised for whoever asked, or told beside what could be found out.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConsumerNotOnline, RocketMQError
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble, hindrance_of
from rocketfleet.controller.planning.preparation import (
    GroupBroker,
    Preparation,
    PreparationState,
    due,
    preparation_of,
    standing_of,
    topics_of,
)
from rocketfleet.controller.planning.snapshot import Ownership
from rocketfleet.controller.reporting import subscriptions
from rocketfleet.controller.rocketmq.group_preparation import Prepared, look, prepare
from rocketfleet.controller.rocketmq.group_removal import Confirm, remove_group
from rocketfleet.group.at_brokers import GroupAtBrokers, owners_of, pulled_queues
from rocketfleet.lag.target import Target, target_of
from rocketfleet.wire.queue import MessageQueue

ASK_MEMBER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a group, as all its brokers together see them, each with the addresses it is connected from."""

    hosts: Mapping[str, frozenset[str]]
    error: str | None = None  # a broker that did not answer; then there may be more
    hindrance: BrokerTrouble | None = None  # the same in a word

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self.hosts)


class GroupAccess(Protocol):
    """What the controller wants of the brokers for one group."""

    async def queues(self) -> frozenset[MessageQueue]: ...
    async def registered_brokers(self) -> frozenset[str]: ...
    async def members(self, *, with_hosts: bool) -> Members: ...
    async def ownership(self, client_ids: Iterable[str]) -> Ownership: ...
    async def subscribed(self) -> dict[str, dict[str, str]]: ...
    async def committed(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]: ...
    def lag_target(self) -> Target: ...
    async def standing(self, known: Preparation, now: float, *, nobody: bool) -> PreparationState: ...
    async def prepare(self) -> Prepared: ...
    async def release_locks(self, client_ids: Collection[str]) -> frozenset[str]: ...
    async def delete_group(self, confirm: Confirm, *, topics_too: bool) -> None: ...


class BrokerAccess(Protocol):
    """The same for all groups."""

    async def of(self, group: ConsumerGroup, config: ClientConfig) -> GroupAccess: ...
    async def forget(self, holder: Hashable) -> None: ...
    async def close(self) -> None: ...


class BrokerClients:
    """Shared clients, one per connection. Who holds which is known here and not with each group's state: a client is
    closed when the last of all its groups lets go. An object that was made again holds what the one before it held.
    """

    def __init__(self, make: Callable[[ClientConfig], Client] = Client) -> None:
        self._make = make
        self._clients: dict[Hashable, Client] = {}
        self._holders: dict[Hashable, Hashable] = {}  # holder → key of its client

    async def of(self, group: ConsumerGroup, config: ClientConfig) -> "GroupBrokers":
        """The brokers of a group. The group holds the connection from here on."""
        key = connection_key(config)
        before = self._holders.get(group.key)
        self._holders[group.key] = key
        if before is not None and before != key:
            await self._close_unused(before)
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = self._make(config)
            client.start()
        return GroupBrokers(client, group)

    async def forget(self, holder: Hashable) -> None:
        """A group is no longer looked after."""
        key = self._holders.pop(holder, None)
        if key is not None:
            await self._close_unused(key)

    async def close(self) -> None:
        clients = list(self._clients.values())
        self._clients.clear()
        self._holders.clear()
        await asyncio.gather(*(client.close() for client in clients))

    async def _close_unused(self, key: Hashable) -> None:
        if key not in self._holders.values():
            client = self._clients.pop(key, None)
            if client is not None:
                await client.close()

    def __len__(self) -> int:
        return len(self._clients)


def connection_key(config: ClientConfig) -> Hashable:
    """All that tells one connection from another; the client id does not, every configuration has a new one."""
    fields = (field.name for field in dataclasses.fields(config) if field.name != "client_id")
    return tuple((name, getattr(config, name)) for name in fields)


class GroupBrokers:
    """One group at its brokers."""

    def __init__(self, client: Client, group: ConsumerGroup) -> None:
        self.client = client
        self._group = group
        self._name = group.group_name
        self._topics = topics_of(group)
        self._at = GroupAtBrokers(client, self._name, self._topics)

    # -- looking ------------------------------------------------------------------------------------------------------

    async def queues(self) -> frozenset[MessageQueue]:
        """The queues of all subscribed topics. NoRoute if one of them does not exist: half of them would mislead."""
        return frozenset(await self._at.queues())

    async def registered_brokers(self) -> frozenset[str]:
        """The names of all brokers that the name servers know."""
        return frozenset((await self.client.name_servers.cluster_info()).broker_addr_table)

    async def members(self, *, with_hosts: bool) -> Members:
        """Who is in the group. RocketMQError if no broker says so. Hosts cost more, so they are asked for if wanted."""
        masters = await self._at.masters()
        hosts: dict[str, set[str]] = {}
        if with_hosts:
            connections = await self._at.connections(masters)
            for seen in connections.some_or_raise().values():
                for one in seen.connection_set:
                    hosts.setdefault(one.client_id, set()).update({host_of(one.client_addr)} - {""})
            errors = connections.errors
        else:
            ids = await self._at.member_ids(masters)
            hosts = {client_id: set() for found in ids.some_or_raise().values() for client_id in found}
            errors = ids.errors
        error = next(iter(errors.values()), None)
        return Members(
            {client_id: frozenset(them) for client_id, them in hosts.items()},
            None if error is None else str(error),
            None if error is None else hindrance_of(error),
        )

    async def ownership(self, client_ids: Iterable[str]) -> Ownership:
        """What members say they hold, asked through a broker: not to be asked often."""
        answers = await self._at.running_infos(client_ids, await self._at.masters(), timeout=ASK_MEMBER_SECONDS)
        owners = owners_of({client_id: pulled_queues(info) for client_id, info in answers.results.items()})
        silent = frozenset(one for one, error in answers.errors.items() if not isinstance(error, ConsumerNotOnline))
        wants = {client_id: subscriptions.read(info.subscription_set) for client_id, info in answers.results.items()}
        return Ownership({queue: frozenset(them) for queue, them in owners.items()}, silent, wants)

    async def subscribed(self) -> dict[str, dict[str, str]]:
        """By what each broker filters for the group, where anybody is in it. One that does not answer is left out."""
        answers = await self._at.connections(await self._at.masters())
        return {
            name: subscriptions.read(found.subscription_table.values())
            for name, found in answers.results.items()
            if found.connection_set
        }

    async def committed(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """The group's offsets. A queue without one, or whose broker does not answer, is not in the answer. They may be
        of topics that the manifest had before.
        """
        queues = list(queues)
        # So that the addresses of the brokers are known, should they have nothing else of the group.
        for topic in {self._at.retry_topic, *(queue.topic for queue in queues)} - set(self._topics):
            with contextlib.suppress(RocketMQError):
                await self.client.subscribe_queues(topic)
        found = await self._at.committed(queues, failures={})
        return {queue: offset for queue, offset in found.items() if offset is not None}

    async def standing(self, known: Preparation, now: float, *, nobody: bool) -> PreparationState:
        """How far the group is prepared at its brokers. Asked are those of which nothing is known, or nothing that
        still counts; what they say goes into what is known. `nobody`: the group has no members.
        """
        known.asked_with(self.client)
        places, wanted = await self._places(), preparation_of(self._group)
        asked = due(known.looks, places, wanted, now, nobody=nobody)
        if asked:
            known.looks |= await look(self.client, self._group, places, asked, now)
        for broker in known.looks.keys() - places.keys():
            del known.looks[broker]
        return standing_of(known.looks, places, wanted)

    def lag_target(self) -> Target:
        """The group as the lag monitor is to watch it."""
        return target_of(self.client, self._group)

    # -- changing -----------------------------------------------------------------------------------------------------

    async def prepare(self) -> Prepared:
        """Write what is missing at the brokers that have the group's topics, each by itself."""
        places = await self._places()
        masters = {name: place.address for name, place in places.items() if place.address is not None}
        return await prepare(self.client, self._group, masters)

    async def release_locks(self, client_ids: Collection[str]) -> frozenset[str]:
        """Unlock what these hold, at all masters. Whoever is still in any broker's list of members is left alone, and
        so is everybody if a broker does not show its list. Returns those whose locks are free now.
        """
        members = await self.members(with_hosts=False)
        if members.error is not None:
            return frozenset()
        gone = frozenset(client_ids) - members.ids
        await self._at.unlock(await self._at.queues(retries=True), sorted(gone))
        return gone

    async def delete_group(self, confirm: Confirm, *, topics_too: bool) -> None:
        """Delete the group in its own cluster. `confirm` is told first what is there, and may still refuse."""
        brokers = {queue.broker for queue in await self.queues()}
        await remove_group(self.client, self._name, brokers, confirm, topics_too=topics_too)

    # -- which brokers ------------------------------------------------------------------------------------------------

    async def _places(self) -> dict[str, GroupBroker]:
        """The brokers that have the group's topics as they are now, those without a master among them."""
        queues: dict[str, set[MessageQueue]] = {}
        for queue in await self.queues():
            queues.setdefault(queue.broker, set()).add(queue)
        masters, number = self.client.brokers.masters(), self.client.remoting.connection_number
        return {
            name: GroupBroker(masters.get(name), number(masters[name]) if name in masters else 0, frozenset(them))
            for name, them in queues.items()
        }


def host_of(address: str) -> str:
    """`10.0.0.7:43210` → `10.0.0.7`; also as Java writes it, `/10.0.0.7:43210`, and with IPv6's brackets."""
    return address.rpartition(":")[0].lstrip("/").strip("[]")
