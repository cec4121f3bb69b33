"""The enumerations of rocketmq-client-python. There they are spread over `client`, `consts` and `ffi`; `facade.client`
exports all of them.
"""

from enum import Enum, IntEnum


class SendStatus(IntEnum):
    """What the broker says of a message that it took."""

    OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class TransactionStatus(IntEnum):
    """What a local transaction or a check says of a half message."""

    COMMIT = 0
    ROLLBACK = 1
    UNKNOWN = 2


class ConsumeStatus(IntEnum):
    """What a consumer's callback says of a message."""

    CONSUME_SUCCESS = 0
    RECONSUME_LATER = 1


class MessageModel(IntEnum):
    """Whether a group shares a topic's messages or every member gets all."""

    BROADCASTING = 0
    CLUSTERING = 1


class TraceModel(IntEnum):
    """Whether message traces are sent."""

    OPEN = 0
    CLOSE = 1


class MessageProperty(Enum):
    """Names of the system's properties, for `ReceivedMessage.get_property`."""

    TRACE_SWITCH = "TRACE_ON"
    MSG_REGION = "MSG_REGION"
    KEYS = "KEYS"
    TAGS = "TAGS"
    WAIT_STORE_MSG_OK = "WAIT"
    DELAY_TIME_LEVEL = "DELAY"
    RETRY_TOPIC = "RETRY_TOPIC"
    REAL_TOPIC = "REAL_TOPIC"
    REAL_QUEUE_ID = "REAL_QID"
    TRANSACTION_PREPARED = "TRAN_MSG"
    PRODUCER_GROUP = "PGROUP"
    MIN_OFFSET = "MIN_OFFSET"
    MAX_OFFSET = "MAX_OFFSET"
    BUYER_ID = "BUYER_ID"
    ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
    TRANSFER_FLAG = "TRANSFER_FLAG"
    CORRECTION_FLAG = "CORRECTION_FLAG"
    MQ2_FLAG = "MQ2_FLAG"
    RECONSUME_TIME = "RECONSUME_TIME"
    UNIQ_CLIENT_MESSAGE_ID_KEYIDX = "UNIQ_KEY"
    MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
    CONSUME_START_TIMESTAMP = "CONSUME_START_TIME"
