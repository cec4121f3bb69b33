"""Brokers in memory, as far as one consumer group can tell, with a clock that the test moves.

They stand in for sockets and the brokers behind them, so that what is hard to bring about on a real one (an answer that
is late, a lock that another takes in between, a commit that is overtaken) is one line of a test. The typed calls above
are the real ones. What a real broker does is tested on a real one.

Several brokers answer as one, each at an address: a queue belongs to the broker in its name, and a test may give an
address a list of members, a time of start or a failure of its own.
"""

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.support.clock import Clock
from tests.unit.consumer.messages import stored

from rocketfleet.client.errors import ConnectError, ConnectionLost, NoBroker, NoRoute
from rocketfleet.client.routing.routes import FoundBroker
from rocketfleet.wire.bodies import (
    ConsumerList,
    ConsumerRunningInfo,
    DataVersion,
    KVTable,
    LockBatchRequest,
    LockBatchResponse,
    ProcessQueueInfo,
    UnlockBatchRequest,
)
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, reply_to
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ME, GROUP, BROKER, ADDRESS = "me", "g", "broker-a", "10.0.0.1:10911"
OTHER_BROKER, OTHER_ADDRESS = "broker-b", "10.0.0.2:10911"
LOCK_LIVES = 60.0
LONG = 1e6  # seconds that a broker has been up, unless a test says otherwise


def queue(number: int = 0, topic: str = "t", broker: str = BROKER) -> MessageQueue:
    return MessageQueue(topic, broker, number)


class ModelBroker:
    """Answers commands. `gates` delay an answer until opened, `failures` raise instead (both by request code); what is
    asked of an address in `down` fails."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.locks: dict[MessageQueue, tuple[str, float]] = {}
        self.offsets: dict[MessageQueue, int] = {}
        self.committed: list[tuple[MessageQueue, int]] = []
        self.messages: dict[MessageQueue, list[bytes]] = defaultdict(list)
        self.minimum: dict[MessageQueue, int] = defaultdict(int)
        self.stored_at: dict[MessageQueue, list[int]] = defaultdict(list)  # of each message, in milliseconds
        self.members = [ME]
        self.lists: dict[str, list[str]] = {}  # by address, where it is another than `members`
        self.up: dict[str, float | None] = {}  # by address: for how long; None: it cannot say yet
        self.wall = 1_700_000_000.0  # seconds since the epoch, by the brokers' clocks
        self.down: set[str] = set()
        self.hung: set[str] = set()  # addresses that never answer
        self.without_retry: set[str] = set()  # addresses that do not have the group's retry topic
        self.holdings: dict[str, frozenset[MessageQueue]] = {}
        self.asked: list[tuple[str, Command]] = []
        self.gates: dict[int, asyncio.Event] = {}
        self.failures: dict[int, Exception] = {}
        self.arrived = asyncio.Event()
        self._address = ADDRESS  # of whoever answers now
        self.answers: dict[int, Callable[[Command], Command | Awaitable[Command]]] = {
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock,
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_offset,
            RequestCode.GET_MAX_OFFSET: lambda c: reply_to(c, fields={"offset": self.end(queue_of(c))}),
            RequestCode.GET_MIN_OFFSET: lambda c: reply_to(c, fields={"offset": self.minimum[queue_of(c)]}),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search_offset,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._list,
            RequestCode.GET_BROKER_RUNTIME_INFO: self._runtime_info,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running_info,
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.HEART_BEAT: reply_to,
            RequestCode.UNREGISTER_CLIENT: reply_to,
        }

    # -- what the client calls ----------------------------------------------------------------------------------------

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        self.asked.append((address, command))
        await asyncio.sleep(0)  # a real call never answers at once
        if command.code in self.failures:
            raise self.failures[command.code]
        if address in self.down:
            raise ConnectError(address, "the test took it down")
        if address in self.hung:
            await asyncio.Event().wait()
        if command.code in self.gates:
            await self.gates[command.code].wait()
        self._address = address
        answer = self.answers[command.code](command)
        return answer if isinstance(answer, Command) else await answer

    async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None:
        await self.call(address, command, timeout)

    def count(self, code: RequestCode) -> int:
        return sum(command.code == code for _, command in self.asked)

    # -- what tests do ------------------------------------------------------------------------------------------------

    def store(self, where: MessageQueue, count: int, at: float | None = None, **parts: Any) -> None:
        """Store messages, at this time (seconds since the epoch); without one, a millisecond after each other."""
        end = self.end(where)
        for offset in range(end, end + count):
            self.stored_at[where].append(offset if at is None else int(at * 1000))
            self.messages[where].append(stored(offset, topic=where.topic, queue_id=where.queue_id, **parts))
        self.arrived.set()

    def end(self, where: MessageQueue) -> int:
        return self.minimum[where] + len(self.messages[where])

    def break_connection(self) -> ConnectionLost:
        return ConnectionLost(ADDRESS, "the test broke it")

    # -- locks --------------------------------------------------------------------------------------------------------

    def holder(self, where: MessageQueue) -> str | None:
        member, since = self.locks.get(where, ("", 0.0))
        return member if member and self.clock() - since < LOCK_LIVES else None

    def _lock(self, command: Command) -> Command:
        body = LockBatchRequest.decode(bytes(command.body))
        granted = [q for q in body.mq_set if self.holder(q) in (None, body.client_id)]
        for q in granted:
            self.locks[q] = (body.client_id, self.clock())
        return reply_to(command, body=LockBatchResponse(lock_ok_mq_set=tuple(granted)).encode())

    def _unlock(self, command: Command) -> Command:
        body = UnlockBatchRequest.decode(bytes(command.body))
        for q in body.mq_set:
            if self.holder(q) == body.client_id:
                del self.locks[q]
        return reply_to(command)

    # -- offsets ------------------------------------------------------------------------------------------------------

    def _query_offset(self, command: Command) -> Command:
        where = queue_of(command)
        if where in self.offsets:
            return reply_to(command, fields={"offset": self.offsets[where]})
        if command.fields.get("setZeroIfNotFound") != "false" and self.minimum[where] == 0:
            return reply_to(command, fields={"offset": 0})
        return reply_to(command, ResponseCode.QUERY_NOT_FOUND, "no offset")

    def _update_offset(self, command: Command) -> Command:
        where, offset = queue_of(command), int(command.fields["commitOffset"])
        if where.topic.startswith("%RETRY%") and self._address in self.without_retry:
            return reply_to(command, ResponseCode.TOPIC_NOT_EXIST, "no such topic")
        self.offsets[where] = offset
        self.committed.append((where, offset))
        return reply_to(command)

    def _search_offset(self, command: Command) -> Command:
        where, timestamp = queue_of(command), int(command.fields["timestamp"])
        before = sum(at < timestamp for at in self.stored_at[where])
        return reply_to(command, fields={"offset": self.minimum[where] + before})

    # -- members ------------------------------------------------------------------------------------------------------

    def _list(self, command: Command) -> Command:
        members = self.lists.get(self._address, self.members)
        return reply_to(command, body=ConsumerList(consumer_id_list=tuple(members)).encode())

    def _runtime_info(self, command: Command) -> Command:
        up = self.up.get(self._address, LONG)
        if up is None:
            return reply_to(command, ResponseCode.SYSTEM_ERROR, "NoSuchElementException")
        minutes, seconds = divmod(int(up), 60)
        table = {
            "runtime": f"[ 0 days, 0 hours, {minutes} minutes, {seconds} seconds ]",
            "bootTimestamp": str(int((self.wall - up) * 1000)),
        }
        return reply_to(command, body=KVTable(table=table).encode())

    def _running_info(self, command: Command) -> Command:
        held = self.holdings.get(command.fields["clientId"], frozenset())
        return reply_to(command, body=ConsumerRunningInfo(mq_table={q: ProcessQueueInfo() for q in held}).encode())

    # -- messages -----------------------------------------------------------------------------------------------------

    async def _pull(self, command: Command) -> Command:
        where, offset = queue_of(command), int(command.fields["queueOffset"])
        if int(command.fields["sysFlag"]) & 1:
            self.offsets[where] = int(command.fields["commitOffset"])
            self.committed.append((where, self.offsets[where]))
        while offset == self.end(where):
            self.arrived.clear()
            await self.arrived.wait()
        if not self.minimum[where] <= offset <= self.end(where):
            following = self.minimum[where] if offset < self.minimum[where] else self.end(where)
            return self._pulled(command, where, ResponseCode.PULL_OFFSET_MOVED, following)
        first = offset - self.minimum[where]
        found = self.messages[where][first : first + int(command.fields["maxMsgNums"])]
        return self._pulled(command, where, ResponseCode.SUCCESS, offset + len(found), b"".join(found))

    def _pulled(
        self, command: Command, where: MessageQueue, code: int, following: int, body: bytes = b"", slave: int = 0
    ) -> Command:
        fields = {
            "nextBeginOffset": following,
            "minOffset": self.minimum[where],
            "maxOffset": self.end(where),
            "suggestWhichBrokerId": slave,
        }
        return reply_to(command, code, fields=fields, body=body)


def queue_of(command: Command) -> MessageQueue:
    return MessageQueue(command.fields["topic"], command.fields.get("bname", BROKER), int(command.fields["queueId"]))


class ModelClient:
    """What the consumer uses of a Client, with a ModelBroker behind it."""

    def __init__(self, broker: ModelBroker, client_id: str = ME) -> None:
        self.remoting = broker
        self.client_id = client_id
        self.known = {BROKER: ADDRESS}
        self.slaves: dict[int, str] = {}
        self.topics: dict[str, tuple[MessageQueue, ...]] = {}
        self.absent: dict[str, tuple[MessageQueue, ...]] = {}  # topic → queues of brokers that are away
        self.brokers = self
        self.routes = self
        self.hurried: list[str] = []  # topics whose routes were asked for before their time
        self.clusters: dict[str, str] = {}
        self.name_servers = self
        self.versions: dict[str, DataVersion | Exception] = {}  # of a master's topics, by its address

    async def topics_version(self, _cluster: str, _broker: str, address: str, _timeout: float) -> DataVersion | None:
        version = self.versions.get(address)
        if isinstance(version, Exception):
            raise version
        return version

    def masters(self) -> dict[str, str]:
        return dict(self.known)

    def master(self, broker: str) -> str:
        if broker not in self.known:
            raise NoBroker(broker, "the test does not know it")
        return self.known[broker]

    def has_only_slaves(self, broker: str) -> bool:
        return broker not in self.known and bool(self.slaves)

    def reader(self, broker: str, broker_id: int = 0) -> FoundBroker:
        if broker_id in self.slaves:
            return FoundBroker(self.slaves[broker_id], slave=True)
        if self.has_only_slaves(broker):
            return FoundBroker(self.slaves[min(self.slaves)], slave=True)
        return FoundBroker(self.master(broker), slave=False)

    async def subscribe_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        if topic not in self.topics:
            raise NoRoute(topic, "the test does not know it")
        return self.topics[topic]

    def hurry(self, topic: str) -> bool:
        self.hurried.append(topic)
        return True

    def absent_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        return self.absent.get(topic, ())
