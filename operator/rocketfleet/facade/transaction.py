"""`TransactionMQProducer` as rocketmq-client-python has it.

In the original the local transaction runs in the thread that sends, so programs use that thread's database session in
it. The producer underneath runs it elsewhere; therefore the sending thread hands the work to the producer, waits, and
runs the local transaction itself when the producer asks for it.

An exception in the local transaction or in the check leaves the outcome open, and the broker asks again. In the
original, C then reads a result that nobody wrote, which often is the answer of the call before, such as "commit".
Here the exception of a local transaction also reaches the caller; that of a check is logged.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
from typing import TYPE_CHECKING, Any

from rocketfleet.facade.consts import TransactionStatus
from rocketfleet.facade.exceptions import ProducerSendSyncFailed
from rocketfleet.facade.message import ReceivedMessage, outgoing
from rocketfleet.facade.producer import Producer, SendResult, raised_as, result_of, to_wire
from rocketfleet.producer.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.facade.message import Message, Text
    from rocketfleet.producer.sync import SyncProducer
    from rocketfleet.producer.transaction import TransactionResult
    from rocketfleet.wire import message as wire

_STATES = {
    TransactionStatus.COMMIT: TransactionState.COMMIT,
    TransactionStatus.ROLLBACK: TransactionState.ROLLBACK,
    TransactionStatus.UNKNOWN: TransactionState.UNKNOWN,
}


def state_of(answer: Any, who: str) -> TransactionState:
    """What a callback says, or a ValueError."""
    try:
        return _STATES[TransactionStatus(answer)]
    except ValueError:
        raise ValueError(f"{who} must return a TransactionStatus, not {answer!r}") from None


class LocalTransaction:
    """One local transaction, waiting in the sending thread for the producer to ask for it."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[wire.Message | None] = queue.SimpleQueue()
        self._outcome: concurrent.futures.Future[TransactionState] = concurrent.futures.Future()

    async def run(self, message: wire.Message) -> TransactionState:
        """For the producer: have the sending thread run it, and wait for the outcome."""
        self._asked.put(message)
        return await asyncio.wrap_future(self._outcome)

    def over(self) -> None:
        """The producer needs it no more."""
        self._asked.put(None)

    def serve(self, local_execute: Callable[[ReceivedMessage, Any], Any], user_args: Any) -> BaseException | None:
        """For the sending thread: run it when asked, return what it raised when all is over."""
        raised: BaseException | None = None
        while (message := self._asked.get()) is not None:
            try:
                outcome = state_of(local_execute(outgoing(message), user_args), "a local transaction")
            except BaseException as error:  # Ctrl-C too leaves the outcome open and reaches the caller
                raised, outcome = error, TransactionState.UNKNOWN
            self._outcome.set_result(outcome)
        return raised


class _Listener:
    """Between the producer underneath and the original's two callbacks."""

    def __init__(self, checker_callback: Callable[[ReceivedMessage], Any]) -> None:
        self._checker = checker_callback

    async def execute(self, message: wire.Message, argument: Any) -> TransactionState:
        assert isinstance(argument, LocalTransaction)
        return await argument.run(message)

    def check(self, message: wire.ReceivedMessage) -> TransactionState:
        return state_of(self._checker(ReceivedMessage(message)), "a transaction check")


class TransactionMQProducer(Producer):
    """A producer whose messages become visible when a local transaction commits.

    `checker_callback(message)` answers a broker that was not told an outcome; it returns a TransactionStatus.
    """

    def __init__(
        self,
        group_id: Text,
        checker_callback: Callable[[ReceivedMessage], Any],
        user_args: Any = None,
        timeout: int | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        super().__init__(group_id, False, timeout, compress_level, max_message_size)
        self._listener = _Listener(checker_callback)

    def _transaction_listener(self) -> _Listener:
        return self._listener

    def send_message_in_transaction(
        self, message: Message, local_execute: Callable[[ReceivedMessage, Any], Any], user_args: Any = None
    ) -> SendResult:
        """Store a half message, run `local_execute(message, user_args)` in this thread, tell the broker the outcome."""
        local = LocalTransaction()
        made = to_wire(message)
        with raised_as(ProducerSendSyncFailed):
            sending = _in_a_thread(self._running(), made, local)
            raised = local.serve(local_execute, user_args)
            sent = sending.result().sent
        if raised is not None:
            raise raised
        return result_of(sent)


def _in_a_thread(
    producer: SyncProducer, message: wire.Message, local: LocalTransaction
) -> concurrent.futures.Future[TransactionResult]:
    answer: concurrent.futures.Future[TransactionResult] = concurrent.futures.Future()

    def send() -> None:
        try:
            answer.set_result(producer.send_in_transaction(message, local))
        except BaseException as error:  # whatever it is, the sending thread waits for it
            answer.set_exception(error)
        finally:
            local.over()

    threading.Thread(target=send, name="transaction", daemon=True).start()
    return answer
