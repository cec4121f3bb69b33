"""A message's properties: their names, and the flat text in which they travel.

RocketMQ keeps everything it knows about a message besides its body in one map of strings, the producer's own entries
and the system's alike: `name \\x01 value \\x02 name \\x01 value \\x02 …`. Nothing escapes the two separators, so a name
or a value that contains one would silently become something else at the other end; it is refused here.

Reading is lenient as Java's is: an entry without a separator is dropped, a value keeps a stray `\\x01`. One difference:
an empty value, which Java drops on reading, is kept, so that what was sent is what is read.
"""

from typing import TYPE_CHECKING, Final

from rocketfleet.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"
KEY_SEPARATOR: Final = " "
MAX_PROPERTIES_LENGTH: Final = 0x7FFF
"""Their length is an int16 in a stored message."""

KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
WAIT_STORE_OK: Final = "WAIT"
DELAY_LEVEL: Final = "DELAY"
RETRY_TOPIC: Final = "RETRY_TOPIC"
ORIGIN_GROUP: Final = "ORIGIN_GROUP"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
TRANSACTION_PREPARED: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
BUYER_ID: Final = "BUYER_ID"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
TRANSFER_FLAG: Final = "TRANSFER_FLAG"
CORRECTION_FLAG: Final = "CORRECTION_FLAG"
MQ2_FLAG: Final = "MQ2_FLAG"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MESSAGE_REGION: Final = "MSG_REGION"
TRACE_SWITCH: Final = "TRACE_ON"
UNIQUE_ID: Final = "UNIQ_KEY"
TRANSACTION_OFFSET: Final = "TRANS_OFFSET"
EXTEND_UNIQUE_INFO: Final = "EXTEND_UNIQ_INFO"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
CONSUME_START_TIMESTAMP: Final = "CONSUME_START_TIME"
PRIORITY: Final = "_SYS_MSG_PRIORITY_"
INNER_NUMBER: Final = "INNER_NUM"
INNER_BASE: Final = "INNER_BASE"
DUPLICATE_INFO: Final = "DUP_INFO"
CHECK_IMMUNITY_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRANSACTION_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID: Final = "__transactionId__"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
INSTANCE_ID: Final = "INSTANCE_ID"
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
REPLY_TTL: Final = "TTL"
REPLY_ARRIVE_TIME: Final = "ARRIVE_TIME"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
CLUSTER: Final = "CLUSTER"
MESSAGE_TYPE: Final = "MSG_TYPE"
POP_CHECKPOINT: Final = "POP_CK"
POP_CHECKPOINT_OFFSET: Final = "POP_CK_OFFSET"
FIRST_POP_TIME: Final = "1ST_POP_TIME"
SHARDING_KEY: Final = "__SHARDINGKEY"
LITE_TOPIC: Final = "__LITE_TOPIC"
FORWARD_QUEUE_ID: Final = "PROPERTY_FORWARD_QUEUE_ID"
REDIRECT: Final = "REDIRECT"
INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"
TRACE_CONTEXT: Final = "TRACE_CONTEXT"
TIMER_DELAY_SECONDS: Final = "TIMER_DELAY_SEC"
TIMER_DELAY_MILLISECONDS: Final = "TIMER_DELAY_MS"
TIMER_DELIVER_AT: Final = "TIMER_DELIVER_MS"
TIMER_ENQUEUE_MILLISECONDS: Final = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MILLISECONDS: Final = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
TIMER_OUT_MILLISECONDS: Final = "TIMER_OUT_MS"
TIMER_DELETE_UNIQUE_ID: Final = "TIMER_DEL_UNIQKEY"
TIMER_DELAY_LEVEL: Final = "TIMER_DELAY_LEVEL"
BORN_HOST: Final = "__BORNHOST"
BORN_TIMESTAMP: Final = "BORN_TIMESTAMP"
DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"
CRC32: Final = "__CRC32#"

SYSTEM_PROPERTIES: Final = frozenset(
    {
        KEYS, TAGS, WAIT_STORE_OK, DELAY_LEVEL, RETRY_TOPIC, ORIGIN_GROUP, REAL_TOPIC, REAL_QUEUE_ID,
        TRANSACTION_PREPARED, PRODUCER_GROUP, MIN_OFFSET, MAX_OFFSET, BUYER_ID, ORIGIN_MESSAGE_ID, TRANSFER_FLAG,
        CORRECTION_FLAG, MQ2_FLAG, RECONSUME_TIME, MESSAGE_REGION, TRACE_SWITCH, UNIQUE_ID, EXTEND_UNIQUE_INFO,
        MAX_RECONSUME_TIMES, CONSUME_START_TIMESTAMP, PRIORITY, DUPLICATE_INFO, TRANSACTION_PREPARED_QUEUE_OFFSET,
        INSTANCE_ID, CORRELATION_ID, REPLY_TO_CLIENT, REPLY_TTL, REPLY_ARRIVE_TIME, PUSH_REPLY_TIME, CLUSTER,
        MESSAGE_TYPE, POP_CHECKPOINT, POP_CHECKPOINT_OFFSET, FIRST_POP_TIME, LITE_TOPIC, INNER_MULTI_QUEUE_OFFSET,
        TIMER_DELAY_SECONDS, TIMER_DELAY_MILLISECONDS, TIMER_DELIVER_AT, TIMER_ENQUEUE_MILLISECONDS,
        TIMER_DEQUEUE_MILLISECONDS, TIMER_ROLL_TIMES, TIMER_OUT_MILLISECONDS, TIMER_DELETE_UNIQUE_ID,
        TIMER_DELAY_LEVEL, BORN_HOST, BORN_TIMESTAMP, DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID, CRC32,
    }
)  # fmt: skip
"""Names that a producer's own properties may not take: the same that Java refuses."""


def encode_properties(properties: "Mapping[str, str]") -> str:
    """The text form, as a SEND_MESSAGE header carries it."""
    if not properties:
        return ""
    text = "".join([f"{name}\x01{value}\x02" for name, value in properties.items()])
    # One count of each separator an entry, or somebody's text is cut elsewhere than here.
    count = len(properties)
    if text.count("\x01") != count or text.count("\x02") != count or "" in properties:
        for name, value in properties.items():
            check_property(name, value)
    return text


def check_property(name: str, value: str) -> None:
    """Refuse a property that the text form cannot carry."""
    if not name:
        raise MessageError("a property needs a name")
    for part, text in (("name", name), ("value", value)):
        for separator in (NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR):
            if separator in text:
                raise MessageError(
                    f"the {part} of property {name!r} contains {separator!r}, which separates properties on the wire; "
                    "encode it (for example in base64) or put it into the body"
                )


def decode_properties(text: str) -> dict[str, str]:
    """Read the text form. A hot function: of the ways to write it, this loop is the quickest that is right."""
    properties: dict[str, str] = {}
    for entry in text.split("\x02"):
        name, separator, value = entry.partition("\x01")
        if separator and name:
            properties[name] = value
    return properties
