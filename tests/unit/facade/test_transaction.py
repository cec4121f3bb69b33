"""The rendezvous between the sending thread and the producer, and what callbacks may answer."""

import asyncio
import threading
from typing import Any

import pytest

from rocketfleet.facade.client import Message, ReceivedMessage, TransactionMQProducer, TransactionStatus
from rocketfleet.facade.exceptions import ProducerSendSyncFailed
from rocketfleet.facade.transaction import LocalTransaction, state_of
from rocketfleet.producer.transaction import TransactionState
from rocketfleet.wire.message import Message as WireMessage


def settle(local: LocalTransaction, execute: Any, arguments: Any = None) -> tuple[Any, Any]:
    """Play the producer in another thread; returns what it learned and what was raised."""
    learned: list[TransactionState] = []

    def produce() -> None:
        learned.append(asyncio.run(local.run(WireMessage("orders", b"half"))))
        local.over()

    thread = threading.Thread(target=produce)
    thread.start()
    raised = local.serve(execute, arguments)
    thread.join()
    return learned[0], raised


@pytest.mark.parametrize("status", list(TransactionStatus))
def test_the_outcome_reaches_the_producer(status: TransactionStatus) -> None:
    assert settle(LocalTransaction(), lambda message, arguments: status) == (TransactionState[status.name], None)


def test_it_runs_in_the_sending_thread_with_message_and_arguments() -> None:
    seen: list[Any] = []

    def execute(message: ReceivedMessage, arguments: Any) -> TransactionStatus:
        seen.extend([threading.current_thread(), message.topic, message.body, arguments])
        return TransactionStatus.COMMIT

    session = object()
    settle(LocalTransaction(), execute, session)
    assert seen == [threading.current_thread(), "orders", b"half", session]


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), KeyboardInterrupt()])
def test_an_exception_leaves_the_outcome_open_and_is_kept(error: BaseException) -> None:
    def execute(message: ReceivedMessage, arguments: Any) -> TransactionStatus:
        raise error

    assert settle(LocalTransaction(), execute) == (TransactionState.UNKNOWN, error)


def test_an_answer_that_is_none_leaves_the_outcome_open() -> None:
    outcome, raised = settle(LocalTransaction(), lambda message, arguments: None)
    assert outcome is TransactionState.UNKNOWN
    assert isinstance(raised, ValueError)


def test_a_producer_that_fails_before_asking_ends_the_wait() -> None:
    local = LocalTransaction()
    local.over()
    assert local.serve(lambda message, arguments: pytest.fail("must not run"), None) is None


@pytest.mark.parametrize("answer", [0, 1, 2])
def test_plain_numbers_are_statuses_too(answer: int) -> None:
    assert state_of(answer, "x").name == TransactionStatus(answer).name


@pytest.mark.parametrize("answer", [None, 3, "COMMIT", -1])
def test_anything_else_is_not(answer: Any) -> None:
    with pytest.raises(ValueError, match="must return a TransactionStatus"):
        state_of(answer, "a check")


def test_a_message_that_cannot_be_sent_runs_no_transaction() -> None:
    producer = TransactionMQProducer("group", lambda message: TransactionStatus.COMMIT, timeout=2000)
    producer.set_name_server_address("127.0.0.1:1")
    message = Message("orders")
    message.set_body("x")
    with producer, pytest.raises(ProducerSendSyncFailed, match=r"127\.0\.0\.1:1"):
        producer.send_message_in_transaction(message, lambda message, arguments: pytest.fail("must not run"))
    with pytest.raises(ProducerSendSyncFailed, match="not running"):
        producer.send_message_in_transaction(message, lambda message, arguments: pytest.fail("must not run"))
