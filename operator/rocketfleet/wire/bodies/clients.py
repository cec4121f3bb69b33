"""The clients of a group: who is connected, and what each says about itself."""

from dataclasses import dataclass, field
from typing import Final

from rocketfleet.wire.bodies.codec import Body, wire_name
from rocketfleet.wire.bodies.heartbeat import SubscriptionData
from rocketfleet.wire.queue import MessageQueue

# Names in ConsumerRunningInfo.properties that Java's tools look for.
PROP_NAME_SERVERS: Final = "PROP_NAMESERVER_ADDR"
PROP_THREADS: Final = "PROP_THREADPOOL_CORE_SIZE"
PROP_ORDERLY: Final = "PROP_CONSUMEORDERLY"
PROP_CONSUME_TYPE: Final = "PROP_CONSUME_TYPE"
PROP_CLIENT_VERSION: Final = "PROP_CLIENT_VERSION"
PROP_START_TIMESTAMP: Final = "PROP_CONSUMER_START_TIMESTAMP"


@dataclass(frozen=True, slots=True)
class ClientConnection(Body):
    """One connected client."""

    client_id: str = ""
    client_addr: str = ""
    language: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerConnection(Body):
    """The answer to GET_CONSUMER_CONNECTION_LIST: a group's members as one broker sees them."""

    connection_set: tuple[ClientConnection, ...] = ()
    subscription_table: dict[str, SubscriptionData] = field(default_factory=dict)
    consume_type: str = ""
    message_model: str = ""
    consume_from_where: str = ""


@dataclass(frozen=True, slots=True)
class QuerySubscriptionResponse(Body):
    """The answer to QUERY_SUBSCRIPTION_BY_CONSUMER: what a group subscribes to in one topic."""

    group: str = ""
    topic: str = ""
    subscription_data: SubscriptionData | None = None


@dataclass(frozen=True, slots=True)
class ProducerConnection(Body):
    """The answer to GET_PRODUCER_CONNECTION_LIST."""

    connection_set: tuple[ClientConnection, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerList(Body):
    """The answer to GET_CONSUMER_LIST_BY_GROUP (Java: GetConsumerListByGroupResponseBody)."""

    consumer_id_list: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessQueueInfo(Body):
    """A member's view of a queue it consumes. (`droped` is the protocol's spelling.)"""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = field(default=0, metadata=wire_name("cachedMsgSizeInMiB"))
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    dropped: bool = field(default=False, metadata=wire_name("droped"))
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class PopProcessQueueInfo(Body):
    """A member's view of a queue it pops from."""

    wait_ack_count: int = 0
    dropped: bool = field(default=False, metadata=wire_name("droped"))
    last_pop_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class ConsumeStatus(Body):
    """A member's rates for one topic; times in milliseconds."""

    pull_rt: float = field(default=0.0, metadata=wire_name("pullRT"))
    pull_tps: float = field(default=0.0, metadata=wire_name("pullTPS"))
    consume_rt: float = field(default=0.0, metadata=wire_name("consumeRT"))
    consume_ok_tps: float = field(default=0.0, metadata=wire_name("consumeOKTPS"))
    consume_failed_tps: float = field(default=0.0, metadata=wire_name("consumeFailedTPS"))
    consume_failed_msgs: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerRunningInfo(Body):
    """The answer to GET_CONSUMER_RUNNING_INFO, which a member gives through its broker."""

    properties: dict[str, str] = field(default_factory=dict)
    subscription_set: tuple[SubscriptionData, ...] = ()
    mq_table: dict[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] = field(default_factory=dict)
    status_table: dict[str, ConsumeStatus] = field(default_factory=dict)
    user_consumer_info: dict[str, str] = field(default_factory=dict)
    jstack: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumeMessageDirectlyResult(Body):
    """The answer to CONSUME_MESSAGE_DIRECTLY. consume_result: CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION, …"""

    order: bool = False
    auto_commit: bool = True
    consume_result: str = "CR_SUCCESS"
    remark: str | None = None
    spent_time_mills: int = 0


@dataclass(frozen=True, slots=True)
class ResetOffset(Body):
    """Queue → offset: the answer to INVOKE_BROKER_TO_RESET_OFFSET, and the body of RESET_CONSUMER_CLIENT_OFFSET."""

    offset_table: dict[MessageQueue, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueOffset(Body):
    """A queue and an offset, for clients that cannot read objects as keys (Java: MessageQueueForC)."""

    topic: str = ""
    broker_name: str = ""
    queue_id: int = 0
    offset: int = 0

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.topic, self.broker_name, self.queue_id)


@dataclass(frozen=True, slots=True)
class ResetOffsetForC(Body):
    """The same as ResetOffset as a list, which a broker sends to a client that says it is written in C++."""

    offset_table: tuple[QueueOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerStatus(Body):
    """The answer to GET_CONSUMER_STATUS_FROM_CLIENT and INVOKE_BROKER_TO_GET_CONSUMER_STATUS."""

    message_queue_table: dict[MessageQueue, int] = field(default_factory=dict)
    consumer_table: dict[str, dict[MessageQueue, int]] = field(default_factory=dict)
