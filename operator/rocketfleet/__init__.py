"""RocketMQ consumer groups on Kubernetes, and the public API: `from rocketfleet import Consumer, Producer, Message`.

What is listed here is what programs may rely on; docs/api.md says what each name is for. Everything else is internal
and may move without notice. Inside the package nobody imports these names from here: modules import each other.

A name is imported when it is first asked for. `import rocketfleet` happens with every command, in every worker and in
every Spark executor, and none of them should pay for what it does not use.

To read the code, take the packages from the bottom up: wire, client, allocation, producer, consumer. DESIGN.md has the
map.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"  # the only place: pyproject.toml reads it from here

if TYPE_CHECKING:
    from rocketfleet.allocation.request import AllocationError, AllocationRequest
    from rocketfleet.allocation.strategies import Parameters as StrategyParameters
    from rocketfleet.allocation.strategies import Scope as AllocationScope
    from rocketfleet.allocation.strategies import Strategy
    from rocketfleet.allocation.strategies import build as build_strategy
    from rocketfleet.base.backoff import BackoffPolicy
    from rocketfleet.client.config import ClientConfig, TlsConfig
    from rocketfleet.client.errors import (
        ConnectError,
        ConnectionLost,
        NoBroker,
        NoNameServer,
        NoPermission,
        NoRoute,
        ProtocolError,
        RequestTimeout,
        ResponseError,
        RocketMQError,
        SystemBusy,
        TopicNotExist,
    )
    from rocketfleet.consumer.consumer import Consumer, ExpressionRefusedError, NoHeartbeatError
    from rocketfleet.consumer.delivery.flow import QueueLimits, TopicLimits
    from rocketfleet.consumer.handover.holdings import FinalOffset
    from rocketfleet.consumer.offset_storage.local_offsets import OffsetFileError
    from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK, SUCCESS, SUSPEND, ConsumeResult, Retry
    from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings, Handover, InitialOffset
    from rocketfleet.consumer.subscription import Subscription
    from rocketfleet.producer import (
        BatchAnswerMismatch,
        BatchLimits,
        BatchResult,
        InvalidMessage,
        Producer,
        ProducerClosed,
        ProducerError,
        ProducerOptions,
        RetryPolicy,
        SendFailed,
        SendResult,
        SendStatus,
        SendTimeout,
        SyncProducer,
        TransactionListener,
        TransactionResult,
        TransactionState,
    )
    from rocketfleet.wire.acl import Credentials
    from rocketfleet.wire.command import HeaderForm
    from rocketfleet.wire.enums import ConsumeFromWhere, ExpressionType, MessageModel
    from rocketfleet.wire.errors import MessageError
    from rocketfleet.wire.message import Compression, Message, ReceivedMessage
    from rocketfleet.wire.queue import MessageQueue

__all__ = [
    "COMMIT",
    "RETRY",
    "ROLLBACK",
    "SUCCESS",
    "SUSPEND",
    "AllocationError",
    "AllocationRequest",
    "AllocationScope",
    "BackoffPolicy",
    "BatchAnswerMismatch",
    "BatchLimits",
    "BatchResult",
    "ClientConfig",
    "Compression",
    "ConnectError",
    "ConnectionLost",
    "ConsumeFromWhere",
    "ConsumeMode",
    "ConsumeResult",
    "Consumer",
    "ConsumerSettings",
    "Credentials",
    "ExpressionRefusedError",
    "ExpressionType",
    "FinalOffset",
    "Handover",
    "HeaderForm",
    "InitialOffset",
    "InvalidMessage",
    "Message",
    "MessageError",
    "MessageModel",
    "MessageQueue",
    "NoBroker",
    "NoHeartbeatError",
    "NoNameServer",
    "NoPermission",
    "NoRoute",
    "OffsetFileError",
    "Producer",
    "ProducerClosed",
    "ProducerError",
    "ProducerOptions",
    "ProtocolError",
    "QueueLimits",
    "ReceivedMessage",
    "RequestTimeout",
    "ResponseError",
    "Retry",
    "RetryPolicy",
    "RocketMQError",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "SendTimeout",
    "Strategy",
    "StrategyParameters",
    "Subscription",
    "SyncProducer",
    "SystemBusy",
    "TlsConfig",
    "TopicLimits",
    "TopicNotExist",
    "TransactionListener",
    "TransactionResult",
    "TransactionState",
    "__version__",
    "build_strategy",
]

# public name → module:attribute. A test keeps it, __all__ and what type checkers see above the same.
_HOMES = {
    "AllocationError": "rocketfleet.allocation.request:AllocationError",
    "AllocationRequest": "rocketfleet.allocation.request:AllocationRequest",
    "AllocationScope": "rocketfleet.allocation.strategies:Scope",
    "Strategy": "rocketfleet.allocation.strategies:Strategy",
    "StrategyParameters": "rocketfleet.allocation.strategies:Parameters",
    "build_strategy": "rocketfleet.allocation.strategies:build",
    "BackoffPolicy": "rocketfleet.base.backoff:BackoffPolicy",
    "ClientConfig": "rocketfleet.client.config:ClientConfig",
    "TlsConfig": "rocketfleet.client.config:TlsConfig",
    "ConnectError": "rocketfleet.client.errors:ConnectError",
    "ConnectionLost": "rocketfleet.client.errors:ConnectionLost",
    "NoBroker": "rocketfleet.client.errors:NoBroker",
    "NoNameServer": "rocketfleet.client.errors:NoNameServer",
    "NoPermission": "rocketfleet.client.errors:NoPermission",
    "NoRoute": "rocketfleet.client.errors:NoRoute",
    "ProtocolError": "rocketfleet.client.errors:ProtocolError",
    "RequestTimeout": "rocketfleet.client.errors:RequestTimeout",
    "ResponseError": "rocketfleet.client.errors:ResponseError",
    "RocketMQError": "rocketfleet.client.errors:RocketMQError",
    "SystemBusy": "rocketfleet.client.errors:SystemBusy",
    "TopicNotExist": "rocketfleet.client.errors:TopicNotExist",
    "Consumer": "rocketfleet.consumer.consumer:Consumer",
    "ExpressionRefusedError": "rocketfleet.consumer.consumer:ExpressionRefusedError",
    "NoHeartbeatError": "rocketfleet.consumer.consumer:NoHeartbeatError",
    "QueueLimits": "rocketfleet.consumer.delivery.flow:QueueLimits",
    "TopicLimits": "rocketfleet.consumer.delivery.flow:TopicLimits",
    "FinalOffset": "rocketfleet.consumer.handover.holdings:FinalOffset",
    "OffsetFileError": "rocketfleet.consumer.offset_storage.local_offsets:OffsetFileError",
    "COMMIT": "rocketfleet.consumer.results:COMMIT",
    "RETRY": "rocketfleet.consumer.results:RETRY",
    "ROLLBACK": "rocketfleet.consumer.results:ROLLBACK",
    "SUCCESS": "rocketfleet.consumer.results:SUCCESS",
    "SUSPEND": "rocketfleet.consumer.results:SUSPEND",
    "ConsumeResult": "rocketfleet.consumer.results:ConsumeResult",
    "Retry": "rocketfleet.consumer.results:Retry",
    "ConsumeMode": "rocketfleet.consumer.settings:ConsumeMode",
    "ConsumerSettings": "rocketfleet.consumer.settings:ConsumerSettings",
    "Handover": "rocketfleet.consumer.settings:Handover",
    "InitialOffset": "rocketfleet.consumer.settings:InitialOffset",
    "Subscription": "rocketfleet.consumer.subscription:Subscription",
    "BatchAnswerMismatch": "rocketfleet.producer:BatchAnswerMismatch",
    "BatchLimits": "rocketfleet.producer:BatchLimits",
    "BatchResult": "rocketfleet.producer:BatchResult",
    "InvalidMessage": "rocketfleet.producer:InvalidMessage",
    "Producer": "rocketfleet.producer:Producer",
    "ProducerClosed": "rocketfleet.producer:ProducerClosed",
    "ProducerError": "rocketfleet.producer:ProducerError",
    "ProducerOptions": "rocketfleet.producer:ProducerOptions",
    "RetryPolicy": "rocketfleet.producer:RetryPolicy",
    "SendFailed": "rocketfleet.producer:SendFailed",
    "SendResult": "rocketfleet.producer:SendResult",
    "SendStatus": "rocketfleet.producer:SendStatus",
    "SendTimeout": "rocketfleet.producer:SendTimeout",
    "SyncProducer": "rocketfleet.producer:SyncProducer",
    "TransactionListener": "rocketfleet.producer:TransactionListener",
    "TransactionResult": "rocketfleet.producer:TransactionResult",
    "TransactionState": "rocketfleet.producer:TransactionState",
    "Credentials": "rocketfleet.wire.acl:Credentials",
    "ConsumeFromWhere": "rocketfleet.wire.enums:ConsumeFromWhere",
    "ExpressionType": "rocketfleet.wire.enums:ExpressionType",
    "MessageModel": "rocketfleet.wire.enums:MessageModel",
    "HeaderForm": "rocketfleet.wire.command:HeaderForm",
    "MessageError": "rocketfleet.wire.errors:MessageError",
    "Compression": "rocketfleet.wire.message:Compression",
    "Message": "rocketfleet.wire.message:Message",
    "ReceivedMessage": "rocketfleet.wire.message:ReceivedMessage",
    "MessageQueue": "rocketfleet.wire.queue:MessageQueue",
}

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would believe in every name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, _, attribute = home.partition(":")
        found = globals()[name] = getattr(import_module(module), attribute)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
