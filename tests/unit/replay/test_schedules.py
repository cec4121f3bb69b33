"""The schedules that are kept are those that the model of now leads to."""

import pytest
from tests.broker.replay import choose
from tests.broker.replay.schedule import kept, read
from tests.broker.replay.script import COMMIT, LOCK, LOOK, RELEASE, RENEW, Action, seconds_of, translate
from tests.unit.protocol.explore import STUCK
from tests.unit.protocol.mutants import MUTANTS
from tests.unit.protocol.paths import nearest, wrong_way
from tests.unit.protocol.scenarios import scenario

from rocketfleet.consumer.handover.ownership import CONFIRM_APART, lease_until
from rocketfleet.consumer.handover.roster import GRACE_SECONDS

SOURCES = dict(choose.sources())


@pytest.mark.parametrize("name", SOURCES)
def test_it_is_fresh(name: str) -> None:
    found = SOURCES[name]()
    assert found.file.read_text() == found.written(), "run `python -m tests.broker.replay.choose`"
    assert read(found.file) == found


def test_none_is_left_over() -> None:
    assert sorted(one.name for one in kept()) == sorted(SOURCES)


def test_every_mutant_that_is_unsafe_is_replayed_or_left_out_for_a_reason() -> None:
    unsafe = {mutant.name for mutant in MUTANTS if mutant.found != STUCK}
    assert {one.mutant for one in kept() if one.mutant} | choose.LEFT_OUT.keys() == unsafe


def test_every_rule_and_every_rare_scenario_is_replayed() -> None:
    rules = {mutant.name: mutant.rule for mutant in MUTANTS}
    assert {rules[one.mutant] for one in kept() if one.mutant} == {0, 1, 2, 3, 4, 5}
    assert {one.scenario for one in kept() if not one.mutant} == set(choose.RARE)


def test_the_unbroken_protocol_refuses_what_the_broken_one_does() -> None:
    mutant = next(one for one in MUTANTS if one.name == "one grant settles a doubt")
    way = nearest(mutant.scenario, wrong_way(mutant).trace)
    assert way.refused == ("m0: q0 is checked",)
    assert way.labels[-1] == "m1 asks b0 for q0"
    assert way.end.shelves[0].holder == 0  # as it is allocated


def script_of(name: str) -> list[Action]:
    return list(next(one for one in kept() if one.name == name).actions)


def test_a_release_is_held_from_when_it_is_decided_until_it_is_handled() -> None:
    actions = script_of("one grant settles a doubt")
    told = [(one.do, one.member, one.request, one.outcome) for one in actions if one.do not in ("hold", "release")]
    assert told == [
        ("cut", "m0", "", ""),
        ("expect", "m1", LOOK, ""),
        ("expect", "m1", RELEASE, "arrived"),
        ("pass", "", "", ""),
        ("mend", "m0", "", ""),
        ("expect", "m0", LOCK, "granted"),
        ("expect", "m1", RELEASE, ""),
        ("expect", "m1", LOCK, "granted"),
    ]
    held = [at for at, one in enumerate(actions) if one.request == RELEASE and one.do in ("hold", "release")]
    first, last = held
    assert actions[first + 1].do == "cut", "it is held before anything happens"
    assert actions[last + 1].outcome == "", "and until it is handled"


def test_a_commit_that_could_have_been_made_and_was_not_is_held() -> None:
    actions = script_of("the stored offset is not read after a doubt")
    holds = [(one.do, at) for at, one in enumerate(actions) if (one.member, one.request) == ("m1", COMMIT)]
    assert [do for do, _ in holds[:3]] == ["hold", "release", "expect"]


def test_renewals_are_left_to_the_members() -> None:
    assert all(one.request != RENEW or one.do != "hold" for schedule in kept() for one in schedule.actions)


def test_expectations_look_back_and_never_ahead() -> None:
    for schedule in kept():
        for at, action in enumerate(schedule.actions):
            assert action.since <= at, schedule.name


@pytest.mark.parametrize("lives", [6.0, 60.0])
def test_ticks_keep_the_order_of_durations(lives: float) -> None:
    seconds = [seconds_of(ticks, lives) for ticks in range(9)]
    assert seconds == sorted(seconds)
    assert seconds[1] < CONFIRM_APART < seconds[2] < GRACE_SECONDS < seconds[3]
    assert seconds[4] < lease_until(0.0, lives) < seconds[5] < lives < seconds[7]


def test_a_translation_depends_on_nothing_but_the_way() -> None:
    mutant = next(one for one in MUTANTS if one.name == "a lost connection is no reason to doubt")
    way = nearest(scenario(mutant.scenario.name), wrong_way(mutant).trace)
    assert translate(way, 60.0) == translate(way, 60.0)
