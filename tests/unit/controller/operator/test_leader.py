"""Leadership: never two who may act, and somebody soon."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.clock import Clock

from rocketfleet.controller.operator.leader import (
    LEASE,
    LEASE_MARGIN,
    RENEW,
    STANDBY_LOOK_SECONDS,
    Leadership,
    LeaseRecord,
    LeaseStep,
    LeaseTaken,
    LeaseTimes,
    ObservedLease,
    decide,
    lease_spec,
    record_of,
    see,
)
from rocketfleet.controller.reconciling.backend import BackendError


@pytest.mark.parametrize("times", [(15, 10, 10), (10, 10, 2), (10, 15, 2), (61, 10, 2)])
def test_times_that_would_let_two_lead_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="has to be shorter"):
        LeaseTimes(*times)


def test_a_lease_of_part_of_a_second_is_waited_for_to_its_end() -> None:
    assert lease_spec(LeaseRecord("me", 7.5, "1"), 0.0)["leaseDurationSeconds"] == 8


async def test_a_leader_acts_until_the_deadline_it_was_given() -> None:
    clock, store = Clock(), Store()
    leader = Leadership(Access(store), "me", wall=lambda: 0.0, clock=clock, times=LeaseTimes(30.0, 20.0, 5.0))
    assert await leader.turn() == 5.0
    assert store.lease is not None
    assert store.lease["spec"]["leaseDurationSeconds"] == 30
    clock.now += 19.9
    assert leader.may_act()
    clock.now += 0.1
    assert not leader.may_act()
    assert leader.seconds_left() == pytest.approx(10.0)


class Store:
    """One Lease, as several operators see it. `cut` names those who cannot reach it."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes = 0


class Access:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.cut = False
        self.answers_lost = False

    async def read(self, timeout: float) -> Mapping[str, Any] | None:
        if self.cut:
            raise BackendError("no answer")
        return self.store.lease

    async def write(self, lease: Mapping[str, Any], version: str | None, timeout: float) -> Mapping[str, Any]:
        if self.cut:
            raise BackendError("no answer")
        held = None if self.store.lease is None else self.store.lease["metadata"]["resourceVersion"]
        if version != held:
            raise LeaseTaken
        self.store.version += 1
        self.store.writes += 1
        self.store.lease = {**lease, "metadata": {"resourceVersion": str(self.store.version)}}
        if self.answers_lost:
            raise BackendError("no answer")
        return self.store.lease


class Someone:
    def __init__(self, name: str, store: Store) -> None:
        self.clock = Clock()
        self.access = Access(store)
        self.heard: list[bool] = []
        self.leadership = Leadership(self.access, name, wall=lambda: 1.0, clock=self.clock, changed=self.heard.append)

    async def turn(self) -> float:
        return await self.leadership.turn()

    @property
    def acts(self) -> bool:
        return self.leadership.may_act()


class TestDecide:
    def test_a_lease_that_is_not_there_or_empty_is_taken(self) -> None:
        assert decide("me", ObservedLease(None, 0.0), 0.0) is LeaseStep.TAKE
        assert decide("me", ObservedLease(LeaseRecord("", 8.0, "1"), 0.0), 0.0) is LeaseStep.TAKE

    def test_ours_is_renewed(self) -> None:
        assert decide("me", ObservedLease(LeaseRecord("me", 8.0, "1"), 0.0), 100.0) is LeaseStep.RENEW

    def test_anothers_is_taken_only_after_it_was_seen_unchanged_for_its_whole_time(self) -> None:
        sight = ObservedLease(LeaseRecord("other", 8.0, "1"), 50.0)
        assert decide("me", sight, 57.9) is LeaseStep.WAIT
        assert decide("me", sight, 58.0) is LeaseStep.TAKE

    def test_a_change_starts_the_time_anew(self) -> None:
        first = see(None, LeaseRecord("other", 8.0, "1"), 10.0)
        assert see(first, LeaseRecord("other", 8.0, "1"), 15.0) is first
        assert see(first, LeaseRecord("other", 8.0, "2"), 15.0).since == 15.0

    @pytest.mark.parametrize("duration", [None, 0, -5, 10**9, "8"])
    def test_a_duration_that_makes_no_sense_is_taken_for_ours(self, duration: object) -> None:
        record = record_of({"metadata": {"resourceVersion": "1"}, "spec": {"leaseDurationSeconds": duration}})
        assert record is not None
        assert record.duration == LEASE


class TestLeadership:
    async def test_the_first_one_leads_and_the_second_waits(self) -> None:
        store = Store()
        first, second = Someone("first", store), Someone("second", store)
        assert await first.turn() == RENEW
        assert await second.turn() == STANDBY_LOOK_SECONDS
        assert first.acts
        assert not second.acts
        assert store.lease is not None
        assert store.lease["spec"]["holderIdentity"] == "first"

    async def test_one_that_cannot_renew_stops_before_the_other_begins(self) -> None:
        store = Store()
        first, second = Someone("first", store), Someone("second", store)
        await first.turn()
        await second.turn()
        first.access.cut = True
        stopped_at = took_at = None
        for _ in range(200):
            for one in (first, second):
                one.clock.now += 0.1
                await one.turn()
            assert not (first.acts and second.acts)
            if stopped_at is None and not first.acts:
                stopped_at = first.clock.now
            if took_at is None and second.acts:
                took_at = second.clock.now
        assert stopped_at is not None
        assert took_at is not None
        assert took_at - stopped_at >= LEASE_MARGIN - 0.2
        assert first.heard == [True, False]

    async def test_a_frozen_leader_does_not_act_when_it_wakes(self) -> None:
        store = Store()
        first, second = Someone("first", store), Someone("second", store)
        await first.turn()
        await second.turn()
        second.clock.now += LEASE + 1
        await second.turn()
        assert second.acts
        first.clock.now += LEASE + 1
        assert not first.acts  # before it has asked anybody
        await first.turn()
        assert not first.acts

    async def test_a_lost_answer_does_not_end_a_term(self) -> None:
        store = Store()
        first = Someone("first", store)
        await first.turn()
        first.access.answers_lost = True
        first.clock.now += RENEW
        await first.turn()
        assert first.acts
        first.access.answers_lost = False
        first.clock.now += RENEW
        await first.turn()
        assert first.acts
        assert first.leadership.seconds_left() == pytest.approx(LEASE)
        assert first.heard == [True]

    async def test_what_is_given_up_is_taken_at_the_next_look(self) -> None:
        store = Store()
        first, second = Someone("first", store), Someone("second", store)
        await first.turn()
        await second.turn()
        await first.leadership.release()
        assert not first.acts
        second.clock.now += STANDBY_LOOK_SECONDS
        await second.turn()
        assert second.acts
        assert store.lease is not None
        assert store.lease["spec"]["leaseTransitions"] == 1

    async def test_giving_up_works_even_if_the_last_renewals_answer_was_lost(self) -> None:
        store = Store()
        first = Someone("first", store)
        await first.turn()
        first.access.answers_lost = True
        await first.turn()
        first.access.answers_lost = False
        await first.leadership.release()
        assert store.lease is not None
        assert store.lease["spec"]["holderIdentity"] == ""

    async def test_a_lease_that_somebody_takes_by_hand_ends_the_term_at_the_next_renewal(self) -> None:
        store = Store()
        first = Someone("first", store)
        await first.turn()
        assert store.lease is not None
        spec = {**store.lease["spec"], "holderIdentity": "somebody"}
        store.lease = {"spec": spec, "metadata": {"resourceVersion": "999"}}
        await first.turn()
        assert not first.acts
        assert store.lease["spec"]["holderIdentity"] == "somebody"

    async def test_the_loop_tells_of_the_end_of_a_term_without_an_answer(self) -> None:
        store = Store()
        first = Someone("first", store)
        running = asyncio.create_task(first.leadership.run())
        try:
            async with asyncio.timeout(20):
                while not first.heard:  # noqa: ASYNC110 - the callback is what is tested
                    await asyncio.sleep(0.01)
                first.access.cut = True
                first.clock.now += LEASE
                while first.heard != [True, False]:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["turn", "turn", "turn", "time", "time", "cut", "heal", "lose", "release"]),
            st.sampled_from([0, 1, 2]),
            st.floats(0.05, 3.0),
        ),
        max_size=80,
    )
)
def test_never_two_act_whatever_happens(steps: list[tuple[str, int, float]]) -> None:
    asyncio.run(_never_two(steps))


async def _never_two(steps: list[tuple[str, int, float]]) -> None:
    store = Store()
    everybody = [Someone(name, store) for name in ("a", "b", "c")]
    for what, who, seconds in steps:
        one = everybody[who]
        match what:
            case "turn":  # one that gets none is frozen
                await one.turn()
            case "time":
                for each in everybody:
                    each.clock.now += seconds
            case "cut":
                one.access.cut = True
            case "heal":
                one.access.cut = one.access.answers_lost = False
            case "lose":
                one.access.answers_lost = True
            case "release":
                await one.leadership.release()
        assert sum(each.acts for each in everybody) <= 1
        assert all(each.leadership.seconds_left() > LEASE_MARGIN for each in everybody if each.acts)
