"""Who is a member and who has departed, by lists that may be wrong."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.handover.roster import (
    GRACE_SECONDS,
    REJOIN_SECONDS,
    RELEASERS,
    REMEMBERED_SECONDS,
    Roster,
    departed,
    in_office,
    look,
    newcomer_waits,
    releases,
)
from rocketfleet.wire.bodies import DataVersion

MEMBERS = st.sampled_from(["a", "b", "c", "d", "e", "f"])
LISTS = st.lists(st.frozensets(MEMBERS, max_size=6), max_size=3)


@dataclass(frozen=True)
class Look:
    lists: list[frozenset[str]]
    interrupted: bool
    later: float  # seconds after the look before

    @property
    def everybody(self) -> frozenset[str]:
        return frozenset().union(*self.lists)


LOOKS = st.lists(st.builds(Look, LISTS, st.booleans(), st.floats(0.0, 30.0)), max_size=25)


def history(looks: list[Look]) -> list[tuple[float, Look, Roster]]:
    now, roster, seen = 1000.0, Roster(), []
    for one in looks:
        now += one.later
        roster = look(roster, one.lists, interrupted=one.interrupted, now=now)
        seen.append((now, one, roster))
    return seen


def see(before: Roster, *members: str, now: float, interrupted: bool = False) -> Roster:
    return look(before, [members], interrupted=interrupted, now=now)


@given(LOOKS)
def test_who_is_in_any_list_is_a_member_and_never_departed(looks: list[Look]) -> None:
    for now, one, roster in history(looks):
        assert one.everybody <= set(roster.members)
        for later in (0.0, GRACE_SECONDS, 1e9):
            assert not one.everybody & departed(roster, now + later)


@given(LOOKS)
def test_nobody_is_a_member_and_absent_at_once_or_comes_from_nowhere(looks: list[Look]) -> None:
    ever: set[str] = set()
    for _, one, roster in history(looks):
        ever |= one.everybody
        assert not roster.absent.keys() & set(roster.members)
        assert not roster.awaited.keys() & roster.present
        assert roster.members == tuple(sorted(set(roster.members)))
        assert roster.absent.keys() | set(roster.members) <= ever


@given(LOOKS)
def test_nobody_departs_before_its_time(looks: list[Look]) -> None:
    """Absent from every list for GRACE_SECONDS, counted from a look at which it was missing."""
    missing_since: dict[str, float] = {}
    for now, one, roster in history(looks):
        for member in one.everybody:
            missing_since.pop(member, None)
        for member in "abcdef":
            if member not in one.everybody:
                missing_since.setdefault(member, now)
        for member in departed(roster, now):
            assert now - missing_since[member] >= GRACE_SECONDS


@given(LOOKS)
def test_who_was_there_before_an_interruption_stays_until_it_is_back_or_had_the_time_to_come(looks: list[Look]) -> None:
    until: dict[str, float] = {}
    before: frozenset[str] = frozenset()
    for now, one, roster in history(looks):
        if one.interrupted:
            for member in before - one.everybody:
                until.setdefault(member, now + REJOIN_SECONDS)
        until = {member: end for member, end in until.items() if member not in one.everybody and now < end}
        assert set(roster.awaited) == set(until)
        assert roster.awaited == until, "nor does another interruption give it more time"
        assert until.keys() <= set(roster.members)
        assert not until.keys() & departed(roster, now)
        before = one.everybody


@given(st.lists(st.tuples(st.booleans(), st.floats(0.1, 5.0)), min_size=1, max_size=80))
def test_a_ghost_does_not_live_for_ever_however_often_the_connection_breaks(flaps: list[tuple[bool, float]]) -> None:
    roster = see(Roster(), "me", "ghost", now=0.0)
    now = 0.0
    for index, (interrupted, later) in enumerate(flaps):
        now += later
        roster = see(roster, "me", now=now, interrupted=interrupted)
        first = flaps[0][1]  # when it was first missed
        if now >= first + REJOIN_SECONDS:
            assert "ghost" not in roster.members, index
    now += REJOIN_SECONDS
    roster = see(roster, "me", now=now, interrupted=True)
    assert roster.members == ("me",)
    now += GRACE_SECONDS + 0.001  # sums of floating-point numbers
    assert "ghost" in departed(roster, now) or now - first >= REMEMBERED_SECONDS


def test_who_vanishes_from_one_list_only_lives() -> None:
    roster = look(Roster(), [("me", "a"), ("me", "a")], interrupted=False, now=0.0)
    roster = look(roster, [("me",), ("me", "a")], interrupted=False, now=1.0)
    assert roster.members == ("a", "me")
    assert departed(roster, 100.0) == frozenset()


def test_a_connection_that_was_reset_for_a_moment_is_no_departure() -> None:
    roster = see(Roster(), "me", "a", now=0.0)
    roster = see(roster, "me", now=1.0)
    assert roster.members == ("me",)
    assert departed(roster, 1.0 + GRACE_SECONDS - 0.01) == frozenset()
    assert departed(roster, 1.0 + GRACE_SECONDS) == {"a"}
    roster = see(roster, "me", "a", now=2.0)
    assert departed(roster, 1e9) == frozenset()
    roster = see(roster, "me", now=10.0)
    assert departed(roster, 10.0 + GRACE_SECONDS - 0.01) == frozenset(), "counted anew"


def test_the_departed_are_forgotten_when_their_locks_are_long_out() -> None:
    roster = see(see(Roster(), "me", "a", now=0.0), "me", now=1.0)
    kept = see(roster, "me", now=1.0 + REMEMBERED_SECONDS - 1)
    assert departed(kept, 1.0 + REMEMBERED_SECONDS - 1) == {"a"}
    assert see(kept, "me", now=1.0 + REMEMBERED_SECONDS).absent == {}


def test_the_times_fit_together() -> None:
    assert GRACE_SECONDS < REJOIN_SECONDS < REMEMBERED_SECONDS


@given(st.frozensets(st.text(min_size=1, max_size=3), min_size=1, max_size=12), st.text(min_size=1, max_size=3))
def test_a_few_survivors_release_what_a_departed_member_held(present: frozenset[str], member: str) -> None:
    present -= {member}
    roster = Roster(present=present)
    chosen = {me for me in present if releases(me, member, roster)}
    assert len(chosen) == min(RELEASERS, len(present))
    assert not releases(member, member, Roster(present=present | {member})), "nobody releases itself"


@given(st.frozensets(MEMBERS, min_size=2), MEMBERS)
def test_views_that_differ_by_one_member_leave_nobody_unreleased(present: frozenset[str], member: str) -> None:
    """Members look at different moments: some may still see another that has gone too."""
    survivors = sorted(present - {member})
    if not survivors:
        return
    also_gone = survivors[0]
    chosen = {me for me in survivors[1:] if releases(me, member, Roster(present=present - {member}))}
    assert chosen or len(survivors) == 1, also_gone


def test_the_next_in_the_order_of_ids_release_and_the_ring_is_closed() -> None:
    roster = Roster(present=frozenset("abcefg"))
    assert {me for me in "abcefg" if releases(me, "d", roster)} == {"e", "f", "g"}
    assert {me for me in "abcefg" if releases(me, "z", roster)} == {"a", "b", "c"}


@given(st.lists(st.one_of(st.none(), st.floats(0.0, 1e6)), max_size=5))
def test_a_newcomer_waits_only_where_no_broker_knows_all_who_live(uptimes: list[float | None]) -> None:
    wait = newcomer_waits(uptimes)
    assert 0.0 <= wait <= REJOIN_SECONDS
    old_enough = any(up is not None and up >= REJOIN_SECONDS for up in uptimes)
    assert (wait == 0.0) == (old_enough or not uptimes)


@pytest.mark.parametrize(
    ("up", "version", "seconds"),
    [
        (None, DataVersion(2, 100_000), None),
        (50.0, None, 50.0),
        (50.0, DataVersion(0, 147_000), 50.0),  # no controller
        (50.0, DataVersion(1, 147_000), 50.0),  # elected as it started; what is new since is a topic
        (50.0, DataVersion(2, 147_000), 3.0),
        (50.0, DataVersion(9, 90_000), 50.0),  # elected before it started again
        (50.0, DataVersion(2, 151_000), 0.0),  # an uptime is in whole seconds
    ],
)
def test_a_master_is_in_office_since_it_started_or_was_elected(
    up: float | None, version: DataVersion | None, seconds: float | None
) -> None:
    assert in_office(up, 100.0, version) == seconds


def test_a_newcomer_waits_for_what_is_left() -> None:
    assert newcomer_waits([4.0, None]) == REJOIN_SECONDS - 4.0
    assert newcomer_waits([None]) == REJOIN_SECONDS
