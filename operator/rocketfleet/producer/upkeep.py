"""What a producer does besides sending: heartbeats, probes of failing brokers, a look for brokers that were gone.

A heartbeat tells a broker which connection belongs to which producer group. The broker needs it for one thing: to ask
about a transaction that was not ended. So it goes out at once on every new connection, not only every half minute, or
a broker that has restarted could not ask for up to that long.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine

from rocketfleet.client import fanout
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoBroker, RocketMQError
from rocketfleet.client.requests import broker_members, broker_offsets
from rocketfleet.producer.queues.faults import FaultTable
from rocketfleet.producer.queues.publishing import Publishing
from rocketfleet.wire.bodies import HeartbeatData, ProducerData

_log = logging.getLogger(__name__)
_LOOK_EVERY = 0.5
_REJOIN_EVERY = 2.0
_UNREGISTER_PATIENCE = 1.0


class ProducerUpkeep:
    """The background of one producer; `start` and `stop` it."""

    def __init__(
        self,
        client: Client,
        group: str,
        publishing: Publishing,
        faults: FaultTable | None,
        *,
        heartbeat_interval: float,
        probe_timeout: float,
        transactional: bool,
    ) -> None:
        self._client = client
        self._group = group
        self._publishing = publishing
        self._faults = faults
        self._heartbeat_interval = heartbeat_interval
        self._probe_timeout = probe_timeout
        self._heartbeat = HeartbeatData(client_id=client.client_id, producer_data_set=(ProducerData(group),))
        self._tasks: set[asyncio.Task[None]] = set()
        self._transactional = transactional
        self._rejoin: dict[str, float] = {}  # addresses that lost their connection, and when to try next
        self._unsubscribe: list[Callable[[], None]] = []
        self._silent: set[str] = set()  # addresses whose failure to take a heartbeat has been logged

    def start(self) -> None:
        """Begin. Needs a running event loop."""
        remoting = self._client.remoting
        self._unsubscribe = [remoting.on_connect(self._connected), remoting.on_disconnect(self._disconnected)]
        self._spawn(self._beat_forever(), "heartbeats")
        self._spawn(self._look_forever(), "probes")

    async def stop(self) -> None:
        """End, and tell the brokers that this producer is gone."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe = []
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        connected = set(self._client.remoting.connected)
        await fanout.each([address for address in self._masters() if address in connected], self._unregister)

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"producer {self._group}: {name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("%s ended by a fault of its own", task.get_name(), exc_info=task.exception())

    def _masters(self) -> list[str]:
        addresses = []
        for broker in self._publishing.brokers():
            with contextlib.suppress(NoBroker):
                addresses.append(self._client.master(broker))
        return addresses

    # -- heartbeats ---------------------------------------------------------------------------------------------------

    def _disconnected(self, address: str, _reason: RocketMQError) -> None:
        """A broker that restarts must be able to ask about transactions, even if nothing is sent to it for a while."""
        if self._transactional and address in self._masters():
            self._rejoin[address] = asyncio.get_running_loop().time() + _REJOIN_EVERY

    def _rejoin_due(self) -> None:
        now = asyncio.get_running_loop().time()
        for address in [address for address, at in self._rejoin.items() if at <= now]:
            self._rejoin[address] = now + _REJOIN_EVERY
            self._spawn(self._beat(address), f"rejoin {address}")

    def _connected(self, address: str) -> None:
        self._rejoin.pop(address, None)
        if address in self._masters():
            self._spawn(self._beat(address), f"heartbeat to {address}")

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_interval)
            self._publishing.drop_unused()
            self._rejoin = {address: at for address, at in self._rejoin.items() if address in self._masters()}
            await fanout.each(self._masters(), self._beat)

    async def _beat(self, address: str) -> None:
        try:
            await broker_members.heartbeat(self._client.remoting, address, self._heartbeat)
        except RocketMQError as error:
            if address not in self._silent:
                self._silent.add(address)
                _log.warning("heartbeat of producer group %s: %s (logged once)", self._group, error)
        else:
            self._silent.discard(address)

    async def _unregister(self, address: str) -> None:
        await broker_members.unregister(
            self._client.remoting,
            address,
            self._client.client_id,
            producer_group=self._group,
            timeout=_UNREGISTER_PATIENCE,
        )

    # -- brokers that are gone ----------------------------------------------------------------------------------------

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._publishing.look_for_absent_brokers()
            self._rejoin_due()
            for broker in () if self._faults is None else self._faults.due_for_probe():
                self._spawn(self._probe(broker), f"probe {broker}")

    async def _probe(self, broker: str) -> None:
        assert self._faults is not None
        queue = self._publishing.topic_on(broker)
        if queue is None:
            self._faults.forget([broker])  # no route names it; if it comes back it comes as new
            return
        try:
            address = self._client.master(broker)
            await broker_offsets.max_offset(self._client.remoting, address, queue, timeout=self._probe_timeout)
        except RocketMQError:
            return
        if self._faults.came_back(broker):
            _log.info("broker %s answers again and is used again", broker)
