"""RocketMQ in memory, as far as the operator asks it: a name server, two brokers, and what they keep of groups.

The real `Client` and all typed calls above it run; `LocalRemoting` takes the place of its connections. What a real
broker does is tested on a real one; here it can be forked, and be made to fail, at any request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.controller.rocketmq.fence import READS
from rocketfleet.wire.bodies import (
    BrokerData,
    ClientConnection,
    ClusterInfo,
    ConsumerConnection,
    ConsumerList,
    ConsumerRunningInfo,
    KVTable,
    LockBatchRequest,
    LockBatchResponse,
    ProcessQueueInfo,
    QueueData,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicOffset,
    TopicRouteData,
    TopicStatsTable,
    UnlockBatchRequest,
)
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, reply_to
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX

NAME_SERVER = "namesrv.example:9876"
BROKERS = {"broker-a": "10.1.0.1:10911", "broker-b": "10.1.0.2:10911"}
CLUSTER = "production"
LOCK_LIVES = 60.0
ASKS_ONLY = READS | {RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, RequestCode.GET_BROKER_RUNTIME_INFO}
Offsets = dict[tuple[str, MessageQueue], int]


@dataclass(frozen=True)
class Member:
    """A consumer that is connected."""

    host: str
    subscriptions: tuple[tuple[str, str], ...]  # topic and expression


@dataclass
class RocketMq:
    """Everything that name server and brokers know. `now` is the time that locks are measured with."""

    now: Callable[[], float]
    topics: dict[str, int] = field(default_factory=lambda: {"orders": 2, "returns": 2})  # queues at each broker
    retry_topics: dict[str, frozenset[str]] = field(default_factory=dict)  # topic → brokers
    groups: dict[tuple[str, str], SubscriptionGroupConfig] = field(default_factory=dict)  # broker and group
    offsets: Offsets = field(default_factory=dict)
    ends: dict[MessageQueue, int] = field(default_factory=dict)
    locks: dict[tuple[str, MessageQueue], tuple[str, float]] = field(default_factory=dict)  # client id and since
    members: dict[str, dict[str, Member]] = field(default_factory=dict)  # group → client id
    away: set[str] = field(default_factory=set)  # brokers that do not answer

    def fork(self, now: Callable[[], float]) -> "RocketMq":
        copied = {name: dict(getattr(self, name)) for name in ("topics", "retry_topics", "groups", "offsets", "ends")}
        members = {group: dict(them) for group, them in self.members.items()}
        return replace(self, now=now, **copied, locks=dict(self.locks), members=members, away=set(self.away))

    def queues(self, topic: str) -> list[MessageQueue]:
        if topic in self.retry_topics:
            return [MessageQueue(topic, broker, 0) for broker in sorted(self.retry_topics[topic])]
        count = self.topics.get(topic, 0)
        return [MessageQueue(topic, broker, number) for broker in BROKERS for number in range(count)]

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        member, since = self.locks.get((group, queue), ("", 0.0))
        return member if member and self.now() - since < LOCK_LIVES else None

    def held_by(self, group: str, client_id: str) -> list[MessageQueue]:
        return sorted(
            queue for (name, queue), (member, _) in self.locks.items() if (name, member) == (group, client_id)
        )

    # -- answers ------------------------------------------------------------------------------------------------------

    def answer(self, broker: str, command: Command) -> Command:
        """What a broker, or the name server (named ""), says."""
        return _ANSWERS[command.code](self, broker, command)

    def _route(self, _: str, command: Command) -> Command:
        topic = command.fields["topic"]
        brokers = sorted(self.retry_topics.get(topic, BROKERS if topic in self.topics else ()))
        if not brokers:
            return reply_to(command, ResponseCode.TOPIC_NOT_EXIST, "no route")
        count = self.topics.get(topic, 1)
        queues = tuple(QueueData(name, count, count, 6) for name in brokers)
        where = tuple(BrokerData(CLUSTER, name, {0: BROKERS[name]}) for name in brokers)
        return reply_to(command, body=TopicRouteData(queues, where).encode())

    def _cluster(self, _: str, command: Command) -> Command:
        brokers = {name: BrokerData(CLUSTER, name, {0: address}) for name, address in BROKERS.items()}
        return reply_to(command, body=ClusterInfo(brokers, {CLUSTER: tuple(BROKERS)}).encode())

    def _group(self, broker: str, command: Command) -> Command:
        found = self.groups.get((broker, command.fields["group"]))
        if found is None:
            return reply_to(command, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "no such group")
        return reply_to(command, body=found.encode())

    def _make_group(self, broker: str, command: Command) -> Command:
        made = SubscriptionGroupConfig.decode(bytes(command.body))
        self.groups[broker, made.group_name] = made
        return reply_to(command)

    def _remove_group(self, broker: str, command: Command) -> Command:
        name = command.fields["groupName"]
        self.groups.pop((broker, name), None)
        if command.fields.get("cleanOffset") == "true":
            for group, queue in list(self.offsets):
                if group == name and queue.broker == broker:
                    del self.offsets[group, queue]
        return reply_to(command)

    def _topic(self, broker: str, command: Command) -> Command:
        name = command.fields["topic"]
        if broker in self.retry_topics.get(name, ()) or name in self.topics:
            count = self.topics.get(name, 1)
            return reply_to(command, body=TopicConfig(name, count, count).encode())
        return reply_to(command, ResponseCode.TOPIC_NOT_EXIST, "no such topic")

    def _make_topic(self, broker: str, command: Command) -> Command:
        name = command.fields["topic"]
        self.retry_topics[name] = self.retry_topics.get(name, frozenset()) | {broker}
        return reply_to(command)

    def _remove_topic(self, broker: str, command: Command) -> Command:
        name = command.fields["topic"]
        left = self.retry_topics.pop(name, frozenset()) - {broker}
        if left and broker:
            self.retry_topics[name] = left
        return reply_to(command)

    def _offset(self, _: str, command: Command) -> Command:
        offset = self.offsets.get((command.fields["consumerGroup"], _queue(command)))
        if offset is None:
            return reply_to(command, ResponseCode.QUERY_NOT_FOUND, "no offset")
        return reply_to(command, fields={"offset": offset})

    def _commit(self, _: str, command: Command) -> Command:
        self.offsets[command.fields["consumerGroup"], _queue(command)] = int(command.fields["commitOffset"])
        return reply_to(command)

    def _end(self, broker: str, command: Command) -> Command:
        return reply_to(command, fields={"offset": self.ends.get(_queue(command, broker), 0)})

    def _begin(self, _: str, command: Command) -> Command:
        return reply_to(command, fields={"offset": 0})

    def _stats(self, broker: str, command: Command) -> Command:
        queues = [queue for queue in self.queues(command.fields["topic"]) if queue.broker == broker]
        if not queues:
            return reply_to(command, ResponseCode.TOPIC_NOT_EXIST, "no such topic")
        table = {queue: TopicOffset(0, self.ends.get(queue, 0), 0) for queue in queues}
        return reply_to(command, body=TopicStatsTable(table).encode())

    def _lock(self, _: str, command: Command) -> Command:
        body = LockBatchRequest.decode(bytes(command.body))
        group, me = body.consumer_group, body.client_id
        granted = [queue for queue in body.mq_set if self.holder(group, queue) in (None, me)]
        self.locks |= {(group, queue): (me, self.now()) for queue in granted}
        return reply_to(command, body=LockBatchResponse(lock_ok_mq_set=tuple(granted)).encode())

    def _unlock(self, _: str, command: Command) -> Command:
        body = UnlockBatchRequest.decode(bytes(command.body))
        for queue in body.mq_set:
            if self.holder(body.consumer_group, queue) == body.client_id:
                del self.locks[body.consumer_group, queue]
        return reply_to(command)

    def _members(self, _: str, command: Command) -> Command:
        found = self.members.get(command.fields["consumerGroup"])
        if not found:
            return reply_to(command, ResponseCode.SYSTEM_ERROR, "no consumer for this group")
        return reply_to(command, body=ConsumerList(tuple(found)).encode())

    def _connections(self, _: str, command: Command) -> Command:
        found = self.members.get(command.fields["consumerGroup"])
        if not found:
            return reply_to(command, ResponseCode.CONSUMER_NOT_ONLINE, "not online")
        wanted = dict(pair for one in found.values() for pair in one.subscriptions)
        answer = ConsumerConnection(
            connection_set=tuple(ClientConnection(one, f"{member.host}:1", "JAVA") for one, member in found.items()),
            subscription_table={topic: subscription(topic, text) for topic, text in wanted.items()},
        )
        return reply_to(command, body=answer.encode())

    def _running(self, _: str, command: Command) -> Command:
        group, me = command.fields["consumerGroup"], command.fields["clientId"]
        if me not in self.members.get(group, {}):
            return reply_to(command, ResponseCode.CONSUMER_NOT_ONLINE, "not online")
        table = {queue: ProcessQueueInfo() for queue in self.held_by(group, me)}
        wants = tuple(subscription(*pair) for pair in self.members[group][me].subscriptions)
        return reply_to(command, body=ConsumerRunningInfo(subscription_set=wants, mq_table=table).encode())

    def _runtime(self, _: str, command: Command) -> Command:
        up = {"runtime": "[ 9 days, 0 hours, 0 minutes, 0 seconds ]", "bootTimestamp": str(int(self.now() * 1000))}
        return reply_to(command, body=KVTable(table=up).encode())


_ANSWERS: dict[int, Callable[[RocketMq, str, Command], Command]] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: RocketMq._route,
    RequestCode.GET_BROKER_CLUSTER_INFO: RocketMq._cluster,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: lambda mq, _, command: reply_to(command),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: RocketMq._group,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: RocketMq._make_group,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: RocketMq._remove_group,
    RequestCode.GET_TOPIC_CONFIG: RocketMq._topic,
    RequestCode.UPDATE_AND_CREATE_TOPIC: RocketMq._make_topic,
    RequestCode.DELETE_TOPIC_IN_BROKER: RocketMq._remove_topic,
    RequestCode.QUERY_CONSUMER_OFFSET: RocketMq._offset,
    RequestCode.UPDATE_CONSUMER_OFFSET: RocketMq._commit,
    RequestCode.GET_MAX_OFFSET: RocketMq._end,
    RequestCode.GET_MIN_OFFSET: RocketMq._begin,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: RocketMq._begin,
    RequestCode.GET_TOPIC_STATS_INFO: RocketMq._stats,
    RequestCode.LOCK_BATCH_MQ: RocketMq._lock,
    RequestCode.UNLOCK_BATCH_MQ: RocketMq._unlock,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: RocketMq._members,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: RocketMq._connections,
    RequestCode.GET_CONSUMER_RUNNING_INFO: RocketMq._running,
    RequestCode.GET_BROKER_RUNTIME_INFO: RocketMq._runtime,
}


def _queue(command: Command, broker: str = "") -> MessageQueue:
    fields = command.fields
    return MessageQueue(fields["topic"], fields.get("bname") or broker, int(fields["queueId"]))


def subscription(topic: str, expression: str) -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=expression, expression_type="TAG")


def broker_at(address: str) -> str:
    """Whose address it is; the name server's is ""."""
    return next((name for name, there in BROKERS.items() if there == address), "")


def writes(command: Command) -> bool:
    """Whether a request changes something at a broker."""
    return command.code not in ASKS_ONLY


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group


Reach = Callable[[str, Command], Awaitable[Command]]


class LocalRemoting(Remoting):
    """Connections to RocketMq: always there, unless what `reach` does says otherwise."""

    def __init__(self, config: ClientConfig, clock: Callable[[], float], reach: Reach) -> None:
        super().__init__(config, clock=clock)
        self._reach = reach
        self._met: set[str] = set()

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        await self.connect(address)
        return await self._reach(address, command)

    async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None:
        await self.call(address, command, timeout)

    async def connect(self, address: str, timeout: float | None = None) -> None:
        if address not in self._met:
            await asyncio.sleep(0)
            self._met.add(address)
            for told in tuple(self._connected):
                told(address)

    @property
    def connected(self) -> tuple[str, ...]:
        return tuple(self._met)

    def is_connected(self, address: str) -> bool:
        return address in self._met

    def connection_number(self, address: str) -> int:
        return int(address in self._met)
