"""The controller's access to RocketMQ: one client for each connection, shared by all groups that use it.

A group *holds* a client as long as it is looked after; the last one that lets go closes it. When a Secret is rotated
the connection's settings change, so the group moves to another client, and the old one is closed behind it.

What is asked about one group is `GroupBrokers`. It never decides: an error is raised for whoever asked, or told beside
what could be found out.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import MessageModel
from rocketfleet.client import admin, broker_locks, broker_members, broker_offsets, fanout
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConsumerNotOnline, NoRoute, RocketMQError
from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.controller.group_preparation import Prepared, prepare
from rocketfleet.controller.snapshot import Ownership
from rocketfleet.lag.target import Target
from rocketfleet.wire.bodies import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue

T = TypeVar("T")
AT_ONCE = 32  # calls under way to the brokers for one group
ASK_MEMBER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a group, as all its brokers together see them, each with the addresses it is connected from."""

    hosts: Mapping[str, frozenset[str]]
    error: str | None = None  # a broker that did not answer; then there may be more

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self.hosts)


class GroupAccess(Protocol):
    """What the controller wants of the brokers for one group."""

    async def queues(self) -> frozenset[MessageQueue]: ...
    async def members(self, *, with_hosts: bool) -> Members: ...
    async def ownership(self, client_ids: Iterable[str]) -> Ownership: ...
    async def committed(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]: ...
    def lag_target(self) -> Target: ...
    async def prepare(self) -> Prepared: ...
    async def release_locks(self, client_ids: Collection[str]) -> frozenset[str]: ...
    async def delete_group(self) -> None: ...


class BrokerAccess(Protocol):
    """The same for all groups."""

    async def of(self, group: ConsumerGroup, config: ClientConfig) -> GroupAccess: ...
    async def forget(self, holder: Hashable) -> None: ...
    async def close(self) -> None: ...


class Brokers:
    """The clients."""

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
        self._topics = tuple(dict.fromkeys(subscription.topic for subscription in group.spec.subscriptions))

    # -- looking ------------------------------------------------------------------------------------------------------

    async def queues(self) -> frozenset[MessageQueue]:
        """The queues of all subscribed topics. NoRoute if one of them does not exist: half of them would mislead."""
        found = await asyncio.gather(*(self.client.subscribe_queues(topic) for topic in self._topics))
        return frozenset(queue for queues in found for queue in queues)

    async def members(self, *, with_hosts: bool) -> Members:
        """Who is in the group. RocketMQError if no broker says so. Hosts cost more, so they are asked for if wanted."""
        masters = await self._masters()

        async def ids(name: str) -> dict[str, str]:
            found = await broker_members.consumer_ids(self.client.remoting, masters[name], self._name)
            return dict.fromkeys(found, "")

        async def connections(name: str) -> dict[str, str]:
            try:
                found = await broker_members.consumer_connections(self.client.remoting, masters[name], self._name)
            except ConsumerNotOnline:
                return {}
            return {one.client_id: host_of(one.client_addr) for one in found.connection_set}

        answers = await fanout.each(masters, connections if with_hosts else ids)
        answers.some_or_raise()
        hosts: dict[str, set[str]] = {}
        for table in answers.results.values():
            for client_id, host in table.items():
                hosts.setdefault(client_id, set()).update({host} - {""})
        error = next((str(error) for error in answers.errors.values()), None)
        return Members({client_id: frozenset(them) for client_id, them in hosts.items()}, error)

    async def ownership(self, client_ids: Iterable[str]) -> Ownership:
        """What members say they hold, asked through a broker. Each question occupies a thread of the broker that also
        serves locks, for as long as the member does not answer: not to be asked often.
        """
        masters = await self._masters()

        async def ask(client_id: str) -> Iterable[MessageQueue]:
            last: RocketMQError | None = None
            for address in masters.values():
                try:
                    info = await broker_members.running_info(
                        self.client.remoting, address, self._name, client_id, timeout=ASK_MEMBER_SECONDS
                    )
                except RocketMQError as error:
                    last = error
                    if not isinstance(error, ConsumerNotOnline):
                        break
                else:
                    return [queue for queue, state in info.mq_table.items() if not state.dropped]
            assert last is not None
            raise last

        answers = await fanout.each(client_ids, ask)
        owners: dict[MessageQueue, set[str]] = {}
        for client_id, queues in answers.results.items():
            for queue in queues:
                owners.setdefault(queue, set()).add(client_id)
        silent = frozenset(one for one, error in answers.errors.items() if not isinstance(error, ConsumerNotOnline))
        return Ownership({queue: frozenset(them) for queue, them in owners.items()}, silent)

    async def committed(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """The group's offsets. A queue without one, or whose broker does not answer, is not in the answer."""
        await self._learn_retry_route()

        async def one(queue: MessageQueue) -> tuple[MessageQueue, int | None]:
            try:
                address = self.client.master(queue.broker)
                stored = await broker_offsets.query_offset(
                    self.client.remoting, address, self._name, queue, zero_if_not_found=False
                )
            except RocketMQError:
                return queue, None
            return queue, stored

        found = await _bounded(one(queue) for queue in queues)
        return {queue: offset for queue, offset in found if offset is not None}

    def lag_target(self) -> Target:
        """The group as the lag monitor is to watch it. Its cluster is called by its name servers."""
        namespace, name = self._group.key
        spec = self._group.spec
        return Target(
            client=self.client,
            group=self._name,
            topics=self._topics,
            where=ConsumeFromWhere[spec.consume_from_where.name],
            broadcast=spec.message_model is MessageModel.BROADCASTING,
            cluster=";".join(spec.cluster.name_servers),
            namespace=namespace,
            name=name,
        )

    # -- changing -----------------------------------------------------------------------------------------------------

    async def prepare(self) -> Prepared:
        return await prepare(self.client, self._group)

    async def release_locks(self, client_ids: Collection[str]) -> frozenset[str]:
        """Unlock what these hold, at all masters. Whoever is still in any broker's list of members is left alone, and
        so is everybody if a broker does not show its list. Returns those whose locks are free now.
        """
        members = await self.members(with_hosts=False)
        if members.error is not None:
            return frozenset()
        gone = frozenset(client_ids) - members.ids
        await self._learn_retry_route()
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in [*await self.queues(), *await self._retry_queues()]:
            by_broker.setdefault(queue.broker, []).append(queue)

        async def unlock(broker: str, client_id: str) -> None:
            address = self.client.master(broker)
            await broker_locks.unlock(self.client.remoting, address, self._name, client_id, by_broker[broker])

        await _bounded(unlock(broker, client_id) for broker in by_broker for client_id in sorted(gone))
        return gone

    async def delete_group(self) -> None:
        """Delete the group, its offsets, its retry and dead letter topics."""
        done = await admin.delete_group(self.client, self._name, remove_offsets=True)
        done.all_or_raise()

    # -- which brokers ------------------------------------------------------------------------------------------------

    async def _masters(self) -> dict[str, str]:
        """The masters of the brokers that have the group's topics, by name. NoBroker for one that has no master."""
        queues = await self.queues()
        names = sorted({queue.broker for queue in queues})
        return {name: self.client.master(name) for name in names}

    async def _retry_queues(self) -> tuple[MessageQueue, ...]:
        try:
            return await self.client.subscribe_queues(RETRY_PREFIX + self._name)
        except NoRoute:
            return ()  # nothing has failed yet

    async def _learn_retry_route(self) -> None:
        """So that the addresses of its brokers are known, should they have nothing else of the group."""
        await self._retry_queues()


def host_of(address: str) -> str:
    """`10.0.0.7:43210` → `10.0.0.7`; also as Java writes it, `/10.0.0.7:43210`, and with IPv6's brackets."""
    return address.rpartition(":")[0].lstrip("/").strip("[]")


async def _bounded(calls: Iterable[Awaitable[T]]) -> list[T]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: Awaitable[T]) -> T:
        async with gate:
            return await call

    return list(await asyncio.gather(*(one(call) for call in calls)))
