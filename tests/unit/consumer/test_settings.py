"""Settings: a mistake is one sentence, before anything is connected."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocketfleet.consumer.delivery.flow import QueueLimits
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings, Handover
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel

ORDERS = (Subscription("orders"),)


def settings(**given_ones: Any) -> ConsumerSettings:
    return ConsumerSettings(**{"group": "g", "subscriptions": ORDERS, **given_ones})


def test_the_defaults_are_javas() -> None:
    default = settings()
    assert (default.consume_thread_min, default.consume_thread_max) == (20, 20)
    assert (default.consume_message_batch_max_size, default.pull_batch_size) == (1, 32)
    assert default.limits == QueueLimits(count=1000, size_mib=100, span=2000)
    assert (default.consume_timeout, default.max_reconsume_times) == (900.0, -1)
    assert default.suspend_current_queue_time == 1.0
    assert default.consume_from_where is ConsumeFromWhere.LAST_OFFSET


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"group": ""}, "group name '' is not allowed"),
        ({"group": "a b"}, "group name 'a b' is not allowed: use up to 120 letters"),
        ({"group": "orders\n"}, "is not allowed"),
        ({"group": "x" * 121}, "is not allowed"),
        ({"group": "DEFAULT_CONSUMER"}, "DEFAULT_CONSUMER is reserved"),
        ({"subscriptions": ()}, "group g subscribes to nothing"),
        ({"subscriptions": (Subscription("t", "a"), Subscription("t", "b"))}, "topic t is subscribed twice"),
        ({"consume_timestamp": 1.0}, "if, and only if, consume_from_where is TIMESTAMP"),
        ({"consume_from_where": ConsumeFromWhere.TIMESTAMP}, "if, and only if, consume_from_where is TIMESTAMP"),
        ({"consume_thread_min": 0}, "threads from 0 to 0"),
        (
            {"consume_thread_min": 65, "consume_thread_max": 64},
            "threads from 65 to 64: give 1 ≤ minimum ≤ maximum ≤ 1000",
        ),
        ({"consume_thread_max": 1001}, "maximum ≤ 1000"),
        ({"consume_message_batch_max_size": 0}, "consume_message_batch_max_size is 0: it must be from 1 to 1024"),
        ({"pull_batch_size": 1025}, "pull_batch_size is 1025"),
        ({"limits": QueueLimits(count=0)}, "limits.count is 0"),
        ({"limits": QueueLimits(size_mib=1025)}, "limits.size_mib is 1025"),
        ({"limits": QueueLimits(span=0)}, "limits.span is 0"),
        ({"consume_timeout": 0.5}, "consume_timeout is 0.5 s: it must be from 1 s to a day"),
        ({"max_reconsume_times": -2}, "-1 is the default, 0 means no retry"),
        ({"pull_interval": -5.0}, "pull_interval is -5 s: it must be from 0 s"),
        ({"pull_interval": float("nan")}, "pull_interval is nan s"),
        ({"suspend_current_queue_time": 31.0}, "from 10 ms to 30 s"),
        ({"drain_timeout": 0.0}, "drain_timeout is 0: it must be more than 0 seconds"),
        ({"handover_timeout": -1.0}, "handover_timeout is -1"),
        ({"heartbeat_interval": 0.0}, "heartbeat_interval is 0"),
        ({"persist_interval": 0.0}, "persist_interval is 0"),
        ({"rebalance_interval": 0.0}, "rebalance_interval is 0"),
        ({"lock_interval": 0.0}, "lock_interval is 0"),
        ({"lock_lives": float("nan")}, "lock_lives is nan"),
        ({"lock_lives": 0.5, "heartbeat_interval": 0.5}, "lock_lives is 0.5 s: it must be from 1 s to an hour"),
        ({"lock_lives": 3601.0}, "lock_lives is 3601 s"),
        ({"heartbeat_interval": 61.0, "lock_lives": 600.0}, "heartbeat_interval is 61 s: it must be at most 60 s"),
        ({"lock_lives": 10.0, "heartbeat_interval": 30.0}, "heartbeat_interval is 30 s: it must be at most 10 s"),
    ],
)
def test_a_mistake_is_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        settings(**wrong)
    assert sentence in str(raised.value)


def test_without_locks_their_life_does_not_bound_heartbeats() -> None:
    assert settings(lock_lives=10.0, handover=Handover.EAGER, heartbeat_interval=30.0).heartbeat_interval == 30.0


def test_some_defaults_go_by_other_settings() -> None:
    assert settings(consume_thread_min=65).consume_thread_max == 65
    assert settings(lock_lives=10.0).heartbeat_interval == 10.0
    assert settings(lock_lives=90.0).heartbeat_interval == 30.0


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"pull_batch_size is 0: .*; persist_interval is 0: "):
        settings(pull_batch_size=0, persist_interval=0.0)


def test_a_drain_may_wait_without_a_limit() -> None:
    assert settings(drain_timeout=float("inf")).drain_timeout == float("inf")


@given(st.text(max_size=130))
@example("DEFAULT_CONSUMER")
def test_a_group_name_is_allowed_if_the_broker_allows_it(name: str) -> None:
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-%|"
    allowed = 0 < len(name) <= 120 and set(name) <= set(plain)
    if allowed and name != "DEFAULT_CONSUMER":
        assert settings(group=name).group == name
    else:
        with pytest.raises(ValueError, match="is reserved" if allowed else "not allowed"):
            settings(group=name)


@pytest.mark.parametrize("mode", list(ConsumeMode))
@pytest.mark.parametrize("handover", list(Handover))
@pytest.mark.parametrize("model", list(MessageModel))
def test_who_locks_queues(mode: ConsumeMode, handover: Handover, model: MessageModel) -> None:
    made = settings(consume_mode=mode, handover=handover, message_model=model)
    if model is MessageModel.BROADCASTING:
        assert not made.locks_queues, "everybody has every queue: there is nothing to lock"
    else:
        assert made.locks_queues == (handover is Handover.EXCLUSIVE or mode is ConsumeMode.ORDERLY)


def test_a_pull_asks_for_a_whole_batch() -> None:
    small = ConsumerSettings("g", (Subscription("t"),), consume_message_batch_max_size=50)
    assert (small.pull_batch_size, small.messages_per_pull) == (32, 50)
    assert ConsumerSettings("g", (Subscription("t"),)).messages_per_pull == 32
