"""What the log says of a message that failed: how many attempts it has, and where it goes after the last."""

import pytest
from tests.unit.consumer.messages import received
from tests.unit.consumer.model_broker import queue

from rocketfleet.consumer.delivery.fate import attempt, consequence, is_dead_letter
from rocketfleet.consumer.delivery.verdicts import Verdicts
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.message import ReceivedMessage


def settings(retries: int, mode: ConsumeMode = ConsumeMode.CONCURRENT) -> ConsumerSettings:
    return ConsumerSettings("flaky", (Subscription("t"),), max_reconsume_times=retries, consume_mode=mode)


BROADCASTING = ConsumerSettings("flaky", (Subscription("t"),), message_model=MessageModel.BROADCASTING)


@pytest.mark.parametrize(
    ("given", "times", "number", "end"),
    [
        (settings(1), 0, "attempt 1 of 2", "it will be delivered again"),
        (settings(1), 1, "attempt 2 of 2", "it goes to the dead letters %DLQ%flaky"),
        (settings(0), 0, "attempt 1 of 1", "it goes to the dead letters %DLQ%flaky"),
        (settings(-1), 15, "attempt 16 of 17", "it will be delivered again"),
        (settings(-1), 16, "attempt 17 of 17", "it goes to the dead letters %DLQ%flaky"),
        (settings(-1, ConsumeMode.ORDERLY), 99, "attempt 100", "the queue waits and tries it again"),
        (settings(2, ConsumeMode.ORDERLY), 2, "attempt 3 of 3", "it goes to the dead letters %DLQ%flaky"),
        (BROADCASTING, 0, "attempt 1 of 1", "broadcasting does not retry, it is dropped"),
    ],
)
def test_the_last_attempt_says_where_the_message_goes(
    given: ConsumerSettings, times: int, number: str, end: str
) -> None:
    assert attempt(given, times) == number
    assert consequence(given, times) == end


def test_a_handler_may_send_it_to_the_dead_letters_itself() -> None:
    assert is_dead_letter(settings(16), 0, level=-1)
    assert not is_dead_letter(settings(16), 0, level=3)


def boom(message: ReceivedMessage) -> None:
    raise KeyError("price")


def test_what_was_tried_without_the_broker_does_not_count_towards_the_last(caplog: pytest.LogCaptureFixture) -> None:
    message = received(5)
    message.reconsume_times = 1
    kept = {message: 1}
    verdicts = Verdicts(inspect_handler(boom), settings(1), kept)
    verdicts.raised(queue(0), message, KeyError("price"))
    kept.clear()
    verdicts.raised(queue(0), message, KeyError("price"))
    first, second = (record.getMessage() for record in caplog.records)
    assert "attempt 1 of 2): it will be delivered again" in first
    assert "attempt 2 of 2): it goes to the dead letters %DLQ%flaky" in second
