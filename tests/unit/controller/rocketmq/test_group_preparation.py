"""In which order a group's first offsets are stored."""

from rocketfleet.controller.rocketmq.group_preparation import in_turns
from rocketfleet.wire.queue import MessageQueue


def queues_of(topic: str, broker: str, count: int) -> list[MessageQueue]:
    return [MessageQueue(topic, broker, number) for number in range(count)]


def test_one_queue_of_each_topic_at_each_broker_goes_ahead() -> None:
    orders, there, payments = queues_of("orders", "a", 3), queues_of("orders", "b", 2), queues_of("payments", "a", 1)
    ahead, rest = in_turns([*orders, *there, *payments])
    assert ahead == [orders[0], there[0], payments[0]]
    assert rest == [*orders[1:], *there[1:]]


def test_no_queues() -> None:
    assert in_turns([]) == ([], [])
