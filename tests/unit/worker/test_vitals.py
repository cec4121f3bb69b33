"""When a worker counts as dead."""

import asyncio
import contextlib

from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import MessageModel
from rocketfleet.worker.vitals import Pulse, Vitals, expected_tasks, problems, round_limit


def settings(**more: object) -> ConsumerSettings:
    return ConsumerSettings("g", (Subscription("t"),), **more)  # type: ignore[arg-type]  # any of its fields


def said(vitals: Vitals) -> list[str]:
    return problems(vitals, stuck_after=30.0, round_limit=60.0)


def test_a_worker_that_is_well() -> None:
    assert said(Vitals(0.3, 20.0)) == []
    assert said(Vitals(30.0, 60.0)) == []
    assert said(Vitals(0.3, None)) == []


def test_each_trouble_is_a_sentence() -> None:
    assert "event loop" in said(Vitals(30.1))[0]
    assert "rebalancing" in said(Vitals(0.1, 61.0))[0]
    assert "'persist g'" in said(Vitals(0.1, 1.0, ("persist g",)))[0]
    assert len(said(Vitals(99.0, 99.0, ("a", "b")))) == 4


def test_rebalancing_may_miss_three_rounds_but_is_given_ten_seconds_in_any_case() -> None:
    assert round_limit(settings(rebalance_interval=20.0)) == 60.0
    assert round_limit(settings(rebalance_interval=0.1)) == 10.0


def test_which_tasks_a_consumer_cannot_do_without() -> None:
    assert {"locks g", "watch g", "commit soon g", "tick g"} < expected_tasks(settings())
    broadcasting = expected_tasks(settings(message_model=MessageModel.BROADCASTING))
    assert "rebalance g" in broadcasting
    assert not {"locks g", "commit soon g"} & broadcasting


async def test_the_pulse_notes_the_time_and_the_tasks() -> None:
    now = [5.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 6.0
    other = asyncio.create_task(asyncio.Event().wait(), name="other")
    assert (pulse.last_beat, pulse.running) == (5.0, frozenset())
    pulse.beat()
    assert pulse.last_beat == 6.0
    assert "other" in pulse.running
    other.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await other
    pulse.beat()
    assert "other" not in pulse.running
