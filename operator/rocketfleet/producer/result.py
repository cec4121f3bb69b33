"""What became of a sent message, as the broker's answer tells it."""

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from rocketfleet.base.counting import counted
from rocketfleet.client.errors import ProtocolError
from rocketfleet.producer.errors import BatchAnswerMismatch
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.message import properties
from rocketfleet.wire.queue import MessageQueue

DEFAULT_REGION = "DefaultRegion"


class SendStatus(enum.Enum):
    """The message is in the broker's log in every one of these. They differ in what would survive a crash right now."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    """The broker flushes before it answers, and that took too long."""
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    """The broker replicates before it answers, and that took too long."""
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    """The broker replicates before it answers, and there is no slave that keeps up."""


STATUS_OF_CODE: Mapping[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


class SendResult(NamedTuple):
    """Where one message was stored.

    `msg_id` is the id the message carries (UNIQ_KEY, made by the producer); `offset_msg_id` names its place at the
    broker. A message sent with a delay or in a transaction is stored in an inner queue first, and `queue_offset` is
    of that one. `recall_handle` takes a delayed message back before it is delivered (5.4 and later).
    """

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    region: str = DEFAULT_REGION
    trace_on: bool = True
    recall_handle: str | None = None


class BatchResult(Sequence[SendResult]):
    """The results of a batch, one for each message in the order given. They share status, queue and time.

    The answer lists the ids of all messages in one string; it is taken apart only when somebody asks.
    """

    __slots__ = ("_count", "_fields", "_msg_ids", "_results", "queue", "queue_offset", "status")

    def __init__(
        self, status: SendStatus, queue: MessageQueue, msg_ids: Sequence[str], fields: Mapping[str, str]
    ) -> None:
        self.status = status
        self.queue = queue
        self.queue_offset = int(fields["queueOffset"])
        self._msg_ids = msg_ids
        self._count = len(msg_ids)
        self._fields = fields
        self._results: tuple[SendResult, ...] | None = None

    def _split(self) -> tuple[SendResult, ...]:
        fields, count = self._fields, self._count
        offset_ids = fields["msgId"].split(",")
        if "batchUniqId" in fields:
            # A topic of batch queues stores the batch as one message and unwraps it for the consumer.
            offset_ids = offset_ids[:1] * count
        if len(offset_ids) != count:
            raise BatchAnswerMismatch(
                f"the broker stored a batch of {counted(count)} in {self.queue} from offset {self.queue_offset} on, "
                f"but its answer names {len(offset_ids)}; only their offset ids are not known"
            )
        region, trace_on = fields.get(properties.MESSAGE_REGION) or DEFAULT_REGION, _trace_on(fields)
        transaction_id = fields.get("transactionId")
        first = self.queue_offset
        return tuple(
            SendResult(self.status, msg_id, offset_id, self.queue, first + i, transaction_id, region, trace_on)
            for i, (msg_id, offset_id) in enumerate(zip(self._msg_ids, offset_ids, strict=True))
        )

    @property
    def results(self) -> tuple[SendResult, ...]:
        """One result a message."""
        if self._results is None:
            self._results = self._split()
        return self._results

    @property
    def msg_ids(self) -> tuple[str, ...]:
        """The messages' unique ids."""
        return tuple(self._msg_ids)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SendResult]:
        return iter(self.results)

    @overload
    def __getitem__(self, index: int) -> SendResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SendResult, ...]: ...
    def __getitem__(self, index: int | slice) -> SendResult | tuple[SendResult, ...]:
        return self.results[index]

    def __repr__(self) -> str:
        return f"BatchResult({counted(self._count)}, {self.status.name}, {self.queue}, from offset {self.queue_offset})"


def read_single(status: SendStatus, topic: str, broker: str, msg_id: str, fields: Mapping[str, str]) -> SendResult:
    """The result of a single send, from the fields of its answer."""
    try:
        return SendResult(
            status,
            msg_id,
            fields["msgId"],
            MessageQueue(topic, broker, int(fields["queueId"])),
            int(fields["queueOffset"]),
            fields.get("transactionId"),
            fields.get(properties.MESSAGE_REGION) or DEFAULT_REGION,
            _trace_on(fields),
            fields.get("recallHandle"),
        )
    except (KeyError, ValueError) as error:
        raise _unreadable(broker, error) from error


def read_batch(
    status: SendStatus, topic: str, broker: str, msg_ids: Sequence[str], fields: Mapping[str, str]
) -> BatchResult:
    """The result of a batch, from the fields of its answer."""
    try:
        return BatchResult(status, MessageQueue(topic, broker, int(fields["queueId"])), msg_ids, fields)
    except (KeyError, ValueError) as error:
        raise _unreadable(broker, error) from error


def _trace_on(fields: Mapping[str, str]) -> bool:
    return fields.get(properties.TRACE_SWITCH) != "false"


def _unreadable(broker: str, error: Exception) -> ProtocolError:
    return ProtocolError(broker, f"it stored the message, but its answer lacks a field or has a wrong one: {error!r}")
