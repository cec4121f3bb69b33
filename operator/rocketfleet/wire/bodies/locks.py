"""Locking queues at a broker: who holds a queue may consume it."""

from dataclasses import dataclass, field

from rocketfleet.wire.bodies.codec import Body, wire_name
from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class LockBatchRequest(Body):
    """The body of LOCK_BATCH_MQ. The client id in it, not the connection, is the holder."""

    consumer_group: str = ""
    client_id: str = ""
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False


@dataclass(frozen=True, slots=True)
class LockBatchResponse(Body):
    """The answer to LOCK_BATCH_MQ: the queues that are locked now. It does not say who holds the others."""

    lock_ok_mq_set: tuple[MessageQueue, ...] = field(default=(), metadata=wire_name("lockOKMQSet"))


@dataclass(frozen=True, slots=True)
class UnlockBatchRequest(Body):
    """The body of UNLOCK_BATCH_MQ."""

    consumer_group: str = ""
    client_id: str = ""
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False
