"""From whatever a handler returned or raised to a verdict on each of its messages. It never fails.

A message without a verdict would stop its queue: nothing would send it back, and no commit would pass it. So this is
the one place that touches what came out of a handler, and whatever goes wrong while looking at it (an answer that
cannot be compared, an exception that cannot be shown, a message whose properties cannot be read) means that the
message comes again. It is said in the log, as far as it can be said.
"""

import logging
from collections.abc import Mapping, Sequence
from types import TracebackType

from rocketfleet.base.counting import counted
from rocketfleet.consumer.delivery.fate import attempt, consequence
from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.results import BY_BROKER, ConsumeResult, Retry, judge
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)

_OURS = ("rocketfleet.consumer.", "rocketfleet.worker.")

Verdict = tuple[ConsumeResult, Retry]
AGAIN: Verdict = (ConsumeResult.RETRY, BY_BROKER)


class Verdicts:
    """`kept` counts for a message how often it was tried again without the broker, which does not count those."""

    def __init__(
        self, handler: Handler, settings: ConsumerSettings, kept: Mapping[ReceivedMessage, int] | None = None
    ) -> None:
        self._handler = handler
        self._settings = settings
        self._kept = {} if kept is None else kept

    def on(self, queue: MessageQueue, batch: Sequence[ReceivedMessage], answer: object) -> list[Verdict]:
        """One verdict for each message. The answer is one for all, a list with one for each, or what was raised."""
        try:
            kind = type(answer)  # and not isinstance, which asks the answer
            if issubclass(kind, BaseException):
                self.raised(queue, batch[0], answer)  # type: ignore[arg-type]  # as was just seen
                return [AGAIN] * len(batch)
            if not issubclass(kind, list | tuple):
                return [self._one(queue, batch[0], answer)] * len(batch)
            answers = self._each(answer, len(batch))
        except BaseException as error:  # a list, too, may be of its author's own making
            self._nonsense(queue, batch[0], error)
            return [AGAIN] * len(batch)
        return [self._one(queue, message, one) for message, one in zip(batch, answers, strict=True)]

    def raised(self, queue: MessageQueue, message: ReceivedMessage, error: BaseException) -> ConsumeResult:
        """The handler raised: say so. It amounts to RETRY."""
        try:
            times = message.reconsume_times - self._kept.get(message, 0)
            _log.error(
                "handler %s raised on %s offset %d (message %s, %s): %s",
                self._handler.name,
                queue,
                message.queue_offset,
                message.msg_id,
                attempt(self._settings, times),
                consequence(self._settings, times),
                exc_info=_from_the_handler(error),
                extra={"offset": message.queue_offset},
            )
        except BaseException as trouble:
            self._nonsense(queue, message, trouble)
        return ConsumeResult.RETRY

    def _each(self, answer: object, count: int) -> Sequence[object]:
        answers: Sequence[object] = tuple(answer)  # type: ignore[arg-type]  # a list or a tuple
        if len(answers) != count:
            raise ValueError(
                f"it returned {counted(len(answers), 'result')} for {counted(count)}; all of them will come again"
            )
        return answers

    def _one(self, queue: MessageQueue, message: ReceivedMessage, answer: object) -> Verdict:
        try:
            return judge(answer)
        except BaseException as error:
            self._nonsense(queue, message, error)
            return AGAIN

    def _nonsense(self, queue: MessageQueue, message: ReceivedMessage, error: BaseException) -> None:
        try:
            _log.error(
                "handler %s, %s offset %d: %s",
                self._handler.name,
                queue,
                message.queue_offset,
                error,
                extra={"offset": message.queue_offset},
            )
        except BaseException:
            _log.error("a handler's answer on %s makes no sense and cannot be shown; its messages come again", queue)


def _from_the_handler(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """The error with its traceback from the handler on: the frames before it are ours, and say nothing."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.tb_next
    return type(error), error, error.__traceback__ if frame is None else frame
