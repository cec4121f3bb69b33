"""Changing a topic: what is not named stays, and no message gets out of reach by accident."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.cli.rows.topic_change import RequestedTopic, hidden, refusal, unread, wanted
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.queue import MessageQueue

THERE = TopicConfig("orders", read_queue_nums=4, write_queue_nums=4, perm=6, order=True, attributes={"a": "b"})


@pytest.mark.parametrize(
    ("asked", "there", "queues"),
    [
        (RequestedTopic(), None, (8, 8)),
        (RequestedTopic(queues=3), None, (3, 3)),
        (RequestedTopic(write_queues=3), None, (3, 3)),
        (RequestedTopic(read_queues=4, write_queues=3), None, (4, 3)),
        (RequestedTopic(), THERE, (4, 4)),
        (RequestedTopic(queues=6), THERE, (6, 6)),
        (RequestedTopic(write_queues=2), THERE, (4, 2)),
        (RequestedTopic(read_queues=2), THERE, (2, 4)),
    ],
)
def test_what_is_not_named_stays(asked: RequestedTopic, there: TopicConfig | None, queues: tuple[int, int]) -> None:
    made = wanted("orders", asked, there)
    assert (made.read_queue_nums, made.write_queue_nums) == queues
    assert made.order == (there is not None)


def test_writing_where_nobody_reads_is_refused() -> None:
    assert unread(wanted("orders", RequestedTopic(write_queues=2), THERE)) is None
    assert "4 queues to write and 2 to read" in str(unread(wanted("orders", RequestedTopic(read_queues=2), THERE)))


@given(st.integers(1, 9), st.integers(1, 9))
def test_only_queues_that_were_read_are_lost(before: int, after: int) -> None:
    gone = hidden(TopicConfig("t", read_queue_nums=before), TopicConfig("t", read_queue_nums=after))
    assert set(gone) == set(range(before)) - set(range(after))


def test_messages_that_would_get_out_of_reach_are_counted_and_the_way_is_told() -> None:
    after = wanted("orders", RequestedTopic(queues=2), THERE)
    counts = {MessageQueue("orders", "broker-a", 2): 12, MessageQueue("orders", "broker-a", 3): 8}
    said = str(refusal(after, counts))
    assert said.startswith("20 messages in the queues broker-a/2, broker-a/3 could not be read any more")
    assert "rocketfleet topic create orders --update --write-queues 2\n" in said
    assert "--update --read-queues 2 --allow-unreachable-messages" in said
    assert refusal(after, dict.fromkeys(counts, 0)) is None


def test_two_ways_to_say_the_same_contradict() -> None:
    assert RequestedTopic(queues=2, read_queues=4).contradiction
    assert not RequestedTopic(read_queues=4, write_queues=2).contradiction
