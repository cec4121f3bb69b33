"""The exceptions of `rocketmq.exceptions`, by the same names and in the same tree, for `except` clauses that name them.

The original tells causes apart only by the call that failed. Here `__cause__` is this project's own error, with the
broker's code and address, for those who want to know more.

`NullPointerException` and `MallocFailed` belong to the native library's memory. Nothing here allocates, so the second
is never raised and the first only where the original raises it for a group that is None.
"""


class RocketMQException(Exception):
    """The root of all."""


class NullPointerException(RocketMQException):
    """Something that must be given was None."""


class MallocFailed(RocketMQException):
    """The native library had no memory. Here only a name."""


class ProducerException(RocketMQException):
    """The root of what a producer raises."""


class ProducerStartFailed(ProducerException):
    """The producer could not be started: a setting is missing or wrong."""


class ProducerSendSyncFailed(ProducerException):
    """`send_sync`, `send_batch` or `send_message_in_transaction` failed."""


class ProducerSendOnewayFailed(ProducerException):
    """A one-way message did not leave."""


class ProducerSendOrderlyFailed(ProducerException):
    """`send_orderly` or `send_orderly_with_sharding_key` failed."""


class ProducerSendAsyncFailed(ProducerException):
    """What the exception callback of `send_async` gets. `file` and `line` were places in C++ and are empty here."""

    def __init__(
        self,
        msg: str,
        error: int = -1,
        file: str = "",
        line: int = 0,
        type: str = "",  # noqa: A002 - the original's name
    ) -> None:
        super().__init__(msg)
        self.error = error
        self.file = file
        self.line = line
        self.type = type


class ConsumerException(RocketMQException):
    """The root of what a consumer raises."""


class PushConsumerStartFailed(ConsumerException):
    """The consumer could not be started."""
