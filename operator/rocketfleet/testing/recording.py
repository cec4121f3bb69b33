"""A handler that writes down when it begins a message and how that ended: outside the product, around the user's code.

Nothing else is changed: answers and exceptions go through as they are. What the consumer will make of an answer is
judged by the consumer's own function, so the record says what the consumer does.
"""

import itertools
import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.results import ConsumeResult, judge
from rocketfleet.testing.history import EventKind, HandlingOutcome, Recorder
from rocketfleet.wire.message import ReceivedMessage

_numbers = itertools.count(1)
_Begun = list[tuple[ReceivedMessage, str]]


def recorded(
    handler: Callable[[Any], Any],
    recorder: Recorder,
    *,
    batch: bool | None = None,
    identify: Callable[[ReceivedMessage], str] = lambda message: message.msg_id,
) -> Callable[[Any], Any]:
    """Wrap a handler, synchronous or not, of single messages or batches (`batch` as in `Consumer`).

    `identify` gives the id that a message is known by in the record; it has to be what `sent` events say.
    """
    inspected = inspect_handler(handler, batch=batch)
    log = _HandlingLog(recorder, identify)

    if inspected.is_async:

        @wraps(handler)
        async def recorded_handler(given: Any) -> Any:
            begun = log.begin(given if inspected.takes_batch else [given])
            try:
                answer = await handler(given)
            except BaseException as error:
                log.raised(begun, error)
                raise
            log.answered(begun, answer)
            return answer
    else:

        @wraps(handler)
        def recorded_handler(given: Any) -> Any:
            begun = log.begin(given if inspected.takes_batch else [given])
            try:
                answer = handler(given)
            except BaseException as error:
                log.raised(begun, error)
                raise
            log.answered(begun, answer)
            return answer

    return recorded_handler


class _HandlingLog:
    """Begins and ends of one handler."""

    def __init__(self, recorder: Recorder, identify: Callable[[ReceivedMessage], str]) -> None:
        self._recorder = recorder
        self._identify = identify

    def begin(self, messages: Sequence[ReceivedMessage]) -> _Begun:
        # A process id in the number: a member that is started again counts from the start.
        begun = [(message, f"{os.getpid()}-{next(_numbers)}") for message in messages]
        call = {"call": begun[0][1]} if len(begun) > 1 else {}
        self._write(EventKind.BEGIN, begun, [call] * len(begun))
        return begun

    def raised(self, begun: _Begun, error: BaseException) -> None:
        ordinary = isinstance(error, Exception | SystemExit | KeyboardInterrupt)
        outcome = HandlingOutcome.ERROR if ordinary else HandlingOutcome.CUT
        self._write(EventKind.END, begun, [{"outcome": outcome.value}] * len(begun))

    def answered(self, begun: _Begun, answer: object) -> None:
        answers: Sequence[object] = [answer] * len(begun)
        if issubclass(type(answer), list | tuple):
            # As the consumer has it: a list of the wrong length says nothing about any of them.
            answers = list(answer) if len(answer) == len(begun) else [_Nonsense()] * len(begun)  # type: ignore[call-overload,arg-type]
        self._write(EventKind.END, begun, [_verdict(one) for one in answers])

    def _write(self, kind: EventKind, begun: _Begun, details: Sequence[dict[str, Any]]) -> None:
        event = self._recorder.event
        self._recorder.write(
            event(
                kind,
                message=self._identify(message),
                queue=message.queue,
                offset=message.queue_offset,
                handling=number,
                tries=message.reconsume_times,
                **more,
            )
            for (message, number), more in zip(begun, details, strict=True)
        )


class _Nonsense:
    """An answer that the consumer will refuse."""


def _verdict(answer: object) -> dict[str, str]:
    try:
        result, _ = judge(answer)
    except Exception:
        return {"outcome": HandlingOutcome.ERROR.value}
    good = result in (ConsumeResult.SUCCESS, ConsumeResult.COMMIT)
    verdict = {"outcome": (HandlingOutcome.SUCCESS if good else HandlingOutcome.RETRY).value}
    if result not in (ConsumeResult.SUCCESS, ConsumeResult.RETRY):
        verdict["answer"] = result.name.lower()
    return verdict
