"""Sending: queue choice, latency fault tolerance, batches, order, delay, transactions.

Read `producer.py`; then, in the order in which a message meets them: `options.py`, `checks.py`, `ids.py`, `batching/`,
`queues/`, `request.py`, `retry.py`, `result.py`. `transaction.py` and `upkeep.py` (what it does besides), `sync.py`
(for code without an event loop), `errors.py`.
"""

from rocketfleet.producer.batching.accumulator import BatchLimits
from rocketfleet.producer.errors import (
    BatchAnswerMismatch,
    InvalidMessage,
    ProducerClosed,
    ProducerError,
    SendFailed,
    SendTimeout,
)
from rocketfleet.producer.options import ProducerOptions
from rocketfleet.producer.producer import Producer
from rocketfleet.producer.result import BatchResult, SendResult, SendStatus
from rocketfleet.producer.retry import RetryPolicy
from rocketfleet.producer.sync import SyncProducer
from rocketfleet.producer.transaction import TransactionListener, TransactionResult, TransactionState

__all__ = [
    "BatchAnswerMismatch",
    "BatchLimits",
    "BatchResult",
    "InvalidMessage",
    "Producer",
    "ProducerClosed",
    "ProducerError",
    "ProducerOptions",
    "RetryPolicy",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "SendTimeout",
    "SyncProducer",
    "TransactionListener",
    "TransactionResult",
    "TransactionState",
]
