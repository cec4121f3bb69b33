"""The module to import from: `from rocketmq.client import …` becomes `from rocketfleet.facade.client import …`.

It has all names of rocketmq-client-python 2.0.0, and of the older `rocketmq` 0.4.4 all but its pull consumer.
"""

from rocketfleet.facade.consts import (
    ConsumeStatus,
    MessageModel,
    MessageProperty,
    SendStatus,
    TraceModel,
    TransactionStatus,
)
from rocketfleet.facade.message import Message, ReceivedMessage
from rocketfleet.facade.producer import Producer, SendResult, hashing_queue_selector
from rocketfleet.facade.push_consumer import PushConsumer
from rocketfleet.facade.transaction import TransactionMQProducer

RecvMessage = ReceivedMessage
"""0.4.4's name."""

__all__ = [
    "ConsumeStatus",
    "Message",
    "MessageModel",
    "MessageProperty",
    "Producer",
    "PushConsumer",
    "ReceivedMessage",
    "RecvMessage",
    "SendResult",
    "SendStatus",
    "TraceModel",
    "TransactionMQProducer",
    "TransactionStatus",
    "hashing_queue_selector",
]
