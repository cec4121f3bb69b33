"""Requests that carry messages: send, pull, send back, end a transaction, look one up.

These are the bare requests, each a builder for the command and a reader for the answer where speed or retries want the
two apart. Choice of queue, retries, flow control and everything else that is a policy lives in the packages above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rocketfleet.client.errors import ProtocolError, response_error
from rocketfleet.client.requests.calls import Answer, Caller, ask
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, request
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.message import ReceivedMessage, decode_messages

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue

AUTO_CREATE_TOPIC: Final = "TBW102"
"""The topic that new topics are modelled on, where the broker may create them."""

TOOLS_GROUP: Final = "TOOLS_CONSUMER"

_STORED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
    }
)
_PULLED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)


@dataclass(frozen=True, slots=True)
class SendReceipt:
    """What the broker says about a message that it has stored.

    `code` is SUCCESS, or one of FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE, FLUSH_SLAVE_TIMEOUT: stored in the master's
    memory, but not yet as safely as the broker's configuration asks for.
    """

    code: int
    offset_msg_id: str
    queue_id: int
    queue_offset: int
    transaction_id: str | None = None
    batch_unique_id: str | None = None
    recall_handle: str | None = None
    region_id: str = "DefaultRegion"
    trace_on: bool = True


def send_request(
    queue: MessageQueue,
    body: bytes | memoryview,
    *,
    group: str,
    born_timestamp: int,
    properties: str = "",
    sys_flag: int = 0,
    flag: int = 0,
    reconsume_times: int = 0,
    max_reconsume_times: int | None = None,
    unit_mode: bool = False,
    batch: bool = False,
    reply: bool = False,
    default_topic: str = AUTO_CREATE_TOPIC,
    default_topic_queues: int = 4,
) -> Command:
    """The request to store one message, or with `batch` an encoded batch; `properties` are encoded already."""
    code = RequestCode.SEND_MESSAGE_V2
    if batch:
        code = RequestCode.SEND_BATCH_MESSAGE
    elif reply:
        code = RequestCode.SEND_REPLY_MESSAGE_V2
    fields: dict[str, str] = {
        "a": group,
        "b": queue.topic,
        "c": default_topic,
        "d": str(default_topic_queues),
        "e": str(queue.queue_id),
        "f": str(sys_flag),
        "g": str(born_timestamp),
        "h": str(flag),
        "i": properties,
        "j": str(reconsume_times),
        "k": "true" if unit_mode else "false",
        "m": "true" if batch else "false",
        "n": queue.broker,
    }
    if max_reconsume_times is not None:
        fields["l"] = str(max_reconsume_times)
    return Command(int(code), fields, body)


def send_receipt(response: Command, peer: str, request_code: int = RequestCode.SEND_MESSAGE_V2) -> SendReceipt:
    """Read the answer to a send; anything but stored is raised."""
    if response.code not in _STORED:
        raise response_error(response.code, response.remark, peer, request_code)
    get = response.fields.get
    try:
        return SendReceipt(
            response.code,
            response.fields["msgId"],
            int(response.fields["queueId"]),
            int(response.fields["queueOffset"]),
            get("transactionId"),
            get("batchUniqId"),
            get("recallHandle"),
            get("MSG_REGION") or "DefaultRegion",
            get("TRACE_ON") != "false",
        )
    except (KeyError, ValueError) as error:
        raise ProtocolError(peer, f"the receipt for a message lacks a field or has a wrong one: {error}") from error


async def send(caller: Caller, address: str, command: Command, timeout: float | None = None) -> SendReceipt:
    """Send what `send_request` made."""
    return send_receipt(await caller.call(address, command, timeout), address, command.code)


@dataclass(frozen=True, slots=True)
class Pulled:
    """The answer to a pull.

    `code` is SUCCESS (messages in `body`, still encoded), PULL_NOT_FOUND (caught up), PULL_RETRY_IMMEDIATELY (nothing
    matched, go on at next_begin_offset) or PULL_OFFSET_MOVED (the offset is not in the queue).
    """

    code: int
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_broker_id: int
    body: bytes | memoryview

    def messages(self, broker: str = "") -> list[ReceivedMessage]:
        """Decode the messages; raises a WireError on a body that is none."""
        return decode_messages(self.body, broker)


def pull_request(
    group: str,
    queue: MessageQueue,
    offset: int,
    *,
    max_messages: int = 32,
    sys_flag: int = 0,
    commit_offset: int = 0,
    suspend_millis: int = 0,
    subscription: str | None = None,
    sub_version: int = 0,
    expression_type: str = ExpressionType.TAG.wire,
    max_bytes: int | None = None,
    lite: bool = False,
) -> Command:
    """The request for messages of a queue from an offset on. `sys_flag`: 1 commit, 2 suspend, 4 subscription."""
    return request(
        RequestCode.LITE_PULL_MESSAGE if lite else RequestCode.PULL_MESSAGE,
        {
            "consumerGroup": group,
            "topic": queue.topic,
            "queueId": queue.queue_id,
            "queueOffset": offset,
            "maxMsgNums": max_messages,
            "sysFlag": sys_flag,
            "commitOffset": commit_offset,
            "suspendTimeoutMillis": suspend_millis,
            "subscription": subscription,
            "subVersion": sub_version,
            "expressionType": expression_type,
            "maxMsgBytes": max_bytes,
            "bname": queue.broker,
        },
    )


def pulled(response: Command, peer: str, request_code: int = RequestCode.PULL_MESSAGE) -> Pulled:
    """Read the answer to a pull."""
    if response.code not in _PULLED:
        raise response_error(response.code, response.remark, peer, request_code)
    fields = response.fields
    try:
        return Pulled(
            response.code,
            int(fields["nextBeginOffset"]),
            int(fields["minOffset"]),
            int(fields["maxOffset"]),
            int(fields["suggestWhichBrokerId"]),
            response.body,
        )
    except (KeyError, ValueError) as error:
        raise ProtocolError(peer, f"the answer to a pull lacks a field or has a wrong one: {error}") from error


async def pull(caller: Caller, address: str, command: Command, timeout: float | None = None) -> Pulled:
    """Send what `pull_request` made. The time-out must outlast a long poll, with slack: see `suspend_millis`."""
    return pulled(await caller.call(address, command, timeout), address, command.code)


async def store_time(
    caller: Caller, address: str, queue: MessageQueue, offset: int, *, timeout: float | None = None
) -> int | None:
    """When the message at an offset was stored, in milliseconds since the epoch; None if there is none.

    It pulls that message for the group of RocketMQ's own tools, which every broker has: nobody's offset or rate
    changes by a look at a message.
    """
    command = pull_request(TOOLS_GROUP, queue, offset, max_messages=1, sys_flag=4, subscription="*")
    found = await pull(caller, address, command, timeout)
    if found.code != ResponseCode.SUCCESS:
        return None
    messages = found.messages(queue.broker)
    return messages[0].store_timestamp if messages else None


async def send_back(
    caller: Caller,
    address: str,
    group: str,
    message: ReceivedMessage,
    *,
    delay_level: int = 0,
    max_reconsume_times: int = 16,
    broker: str = "",
    timeout: float | None = None,
) -> None:
    """Hand a message that could not be consumed back to its broker, to come again later or to be a dead letter."""
    await ask(
        caller,
        address,
        request(
            RequestCode.CONSUMER_SEND_MSG_BACK,
            {
                "group": group,
                "originTopic": message.topic,
                "offset": message.commit_log_offset,
                "delayLevel": delay_level,
                "originMsgId": message.msg_id,
                "maxReconsumeTimes": max_reconsume_times,
                "unitMode": False,
                "bname": broker or message.broker or None,
            },
        ),
        timeout,
    )


def end_transaction_request(
    *,
    group: str,
    topic: str,
    tran_state_table_offset: int,
    commit_log_offset: int,
    decision: int,
    msg_id: str,
    transaction_id: str | None = None,
    from_check: bool = False,
    broker: str | None = None,
    remark: str | None = None,
) -> Command:
    """The request that ends a transaction; `decision` is one of the TRANSACTION_… numbers. Java sends it one-way."""
    made = request(
        RequestCode.END_TRANSACTION,
        {
            "topic": topic,
            "producerGroup": group,
            "tranStateTableOffset": tran_state_table_offset,
            "commitLogOffset": commit_log_offset,
            "commitOrRollback": decision,
            "fromTransactionCheck": from_check,
            "msgId": msg_id,
            "transactionId": transaction_id,
            "bname": broker,
        },
    )
    made.remark = remark
    return made


async def view_message(
    caller: Caller, address: str, commit_log_offset: int, *, topic: str = "", timeout: float | None = None
) -> ReceivedMessage:
    """The message at this offset of the broker's commit log, which is what an offset message id names."""
    answer = await ask(
        caller,
        address,
        request(RequestCode.VIEW_MESSAGE_BY_ID, {"topic": topic or None, "offset": commit_log_offset}),
        timeout,
    )
    return _only(answer, answer.body(decode_messages))


def _only(answer: Answer, messages: list[ReceivedMessage]) -> ReceivedMessage:
    if len(messages) != 1:
        raise ProtocolError(answer.peer, f"one message was asked for and {len(messages)} came", answer.request_code)
    return messages[0]
