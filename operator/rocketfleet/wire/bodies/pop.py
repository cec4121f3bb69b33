"""Pop consuming: queues handed out by the broker, and acknowledgements in bulk."""

from dataclasses import dataclass, field
from enum import StrEnum

from rocketfleet.wire.bodies.codec import Body, wire_name
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.queue import MessageQueue


class RequestMode(StrEnum):
    """How a group's members get the messages of a topic."""

    PULL = "PULL"
    POP = "POP"


@dataclass(frozen=True, slots=True)
class QueryAssignmentRequest(Body):
    """The body of QUERY_ASSIGNMENT: asks the broker to allocate."""

    topic: str = ""
    consumer_group: str = ""
    client_id: str = ""
    strategy_name: str = "AVG"
    message_model: str = MessageModel.CLUSTERING.wire


@dataclass(frozen=True, slots=True)
class MessageQueueAssignment(Body):
    """A queue for the member that asked, and how to consume it. In pop mode the queue id may be -1: any."""

    message_queue: MessageQueue | None = None
    mode: str = RequestMode.PULL
    attachments: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class QueryAssignmentResponse(Body):
    """The answer to QUERY_ASSIGNMENT."""

    message_queue_assignments: tuple[MessageQueueAssignment, ...] = ()


@dataclass(frozen=True, slots=True)
class SetMessageRequestMode(Body):
    """The body of SET_MESSAGE_REQUEST_MODE."""

    topic: str = ""
    consumer_group: str = ""
    mode: str = RequestMode.PULL
    pop_share_queue_num: int = 0


@dataclass(frozen=True, slots=True)
class BatchAck(Body):
    """Acknowledges several messages of one pop. `bit_set`: bit n, lowest first, stands for start_offset + n."""

    consumer_group: str = field(default="", metadata=wire_name("c"))
    topic: str = field(default="", metadata=wire_name("t"))
    retry: str = field(default="0", metadata=wire_name("r"))
    start_offset: int = field(default=0, metadata=wire_name("so"))
    queue_id: int = field(default=0, metadata=wire_name("q"))
    revive_queue_id: int = field(default=0, metadata=wire_name("rq"))
    pop_time: int = field(default=0, metadata=wire_name("pt"))
    invisible_time: int = field(default=0, metadata=wire_name("it"))
    bit_set: bytes = field(default=b"", metadata=wire_name("b"))


@dataclass(frozen=True, slots=True)
class BatchAckRequest(Body):
    """The body of BATCH_ACK_MESSAGE."""

    broker_name: str = ""
    acks: tuple[BatchAck, ...] = ()
