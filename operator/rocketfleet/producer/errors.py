"""What can go wrong on the way from a message to a stored message, beyond what the client's own errors already say."""

from rocketfleet.client.errors import RocketMQError


class ProducerError(RocketMQError):
    """The root of what the producer raises on purpose."""


class InvalidMessage(ProducerError, ValueError):
    """The message, batch or setting cannot be sent as it is. Nothing was sent, and sending it again will not help."""


class ProducerClosed(ProducerError):
    """The producer is not running: it was not started yet, or is closed."""


class SendTimeout(ProducerError, TimeoutError):
    """The time for the whole send was used up before an attempt could be made, or made again."""


class SendFailed(ProducerError):
    """Every attempt failed. `__cause__` is the last failure; a message may still have been stored by one of them.

    `brokers` are the brokers tried, in order, and `code` is the last broker's answer, if the last attempt had one.
    """

    def __init__(self, topic: str, brokers: tuple[str, ...], seconds: float, last: BaseException) -> None:
        self.topic = topic
        self.brokers = brokers
        self.code: int | None = getattr(last, "code", None)
        times = "once" if len(brokers) == 1 else f"{len(brokers)} times"
        super().__init__(
            f"sending to topic {topic} was tried {times} in {seconds:.3f} s (brokers: {', '.join(brokers)}) "
            f"and failed; last: {last}"
        )


class BatchAnswerMismatch(ProducerError):
    """The broker stored a batch, but its answer does not name every message, so their offset ids are not known."""
