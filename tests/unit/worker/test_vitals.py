"""When a worker counts as dead."""

from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.worker.vitals import MemberVitals, Pulse, problems, round_limit


def settings(**more: object) -> ConsumerSettings:
    return ConsumerSettings("g", (Subscription("t"),), **more)  # type: ignore[arg-type]  # any of its fields


def said(vitals: MemberVitals) -> list[str]:
    return problems(vitals, stuck_after=30.0, round_limit=60.0)


def test_a_worker_that_is_well() -> None:
    assert said(MemberVitals(0.3, 20.0)) == []
    assert said(MemberVitals(30.0, 60.0)) == []
    assert said(MemberVitals(0.3, None)) == []


def test_each_trouble_is_a_sentence() -> None:
    assert "event loop" in said(MemberVitals(30.1))[0]
    assert "rebalancing" in said(MemberVitals(0.1, 61.0))[0]
    assert "'persist g'" in said(MemberVitals(0.1, 1.0, ("persist g",)))[0]
    assert len(said(MemberVitals(99.0, 99.0, ("a", "b")))) == 4
    assert said(MemberVitals(0.1, 1.0, queue_problems=("t@b/0: its task has ended",))) == ["t@b/0: its task has ended"]


def test_rebalancing_may_miss_three_rounds_but_is_given_ten_seconds_in_any_case() -> None:
    assert round_limit(settings(rebalance_interval=20.0)) == 60.0
    assert round_limit(settings(rebalance_interval=0.1)) == 10.0


def test_the_pulse_notes_the_time() -> None:
    now = [5.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 6.0
    assert pulse.last_beat == 5.0
    pulse.beat()
    assert pulse.last_beat == 6.0
