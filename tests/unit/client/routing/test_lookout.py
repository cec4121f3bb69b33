"""What is due when brokers are away: looks at routes, attempts to connect, and how much of it at most."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.client.routing.lookout import A_WINDOW, BELIEVED, KEPT, TOPICS_A_LOOK, WINDOW, Lookout

A, B = "broker-a", "broker-b"
HERE, NOBODY = frozenset({A}), frozenset[str]()


class Scene:
    """A lookout, the time, and which topics name which brokers."""

    def __init__(self, topics: dict[str, frozenset[str]] | None = None, seed: int = 7) -> None:
        self.now = 1000.0
        self.topics = {"T": frozenset({A}), "U": frozenset({A})} if topics is None else topics
        self.lookout = Lookout(
            clock=lambda: self.now,
            random=random.Random(seed).random,
            naming=lambda broker: [topic for topic, brokers in self.topics.items() if broker in brokers],
        )

    def note(self, broker: str = A, master: str | None = "a:1", *, named: bool = True, connected: bool = False) -> None:
        self.lookout.note(broker, master, named=named, connected=connected)

    def change(self, topic: str, brokers: frozenset[str]) -> None:
        before, self.topics[topic] = self.topics[topic], brokers
        self.lookout.route_changed(topic, before, brokers)

    def run(self, seconds: float, *, retry_in: float | None = None) -> list[tuple[float, str]]:
        """Let time go by, waking as told: what was done when. Attempts fail, if `retry_in` is given."""
        done: list[tuple[float, str]] = []
        end, start = self.now + seconds, self.now
        while True:
            due = self.lookout.due()
            done += [(self.now - start, what) for what in (*due.topics, *due.brokers)]
            for broker in due.brokers:
                if retry_in is not None:
                    self.lookout.failed(broker, "a:1", retry_in)
            wake = max(self.lookout.wake_at(), self.now)
            assert wake > self.now or due.topics or due.brokers, "it would spin"
            if wake > end:
                self.now = end
                return done
            self.now = wake


def test_nothing_is_done_for_brokers_that_are_there() -> None:
    scene = Scene()
    scene.note(connected=True)
    assert scene.run(3600) == []
    assert scene.lookout.away == scene.lookout.unnamed == frozenset()
    assert scene.lookout.wake_at() == float("inf")


def test_a_lost_master_is_looked_for_at_once_and_about_every_second() -> None:
    scene = Scene()
    scene.note()
    assert scene.lookout.away == {A}
    assert scene.lookout.due() == (("T", "U"), (A,))
    assert scene.lookout.due() == ((), ())  # what was told is taken as done
    times = [when for when, what in scene.run(100) if what == "T"]
    assert 0.125 <= times[0] <= 0.25 < times[1] <= 0.75
    assert all(0.5 <= later - earlier <= 1.0 for earlier, later in itertools.pairwise(times[1:]))
    assert scene.lookout.wake_at() < scene.now + 1.0  # and goes on
    scene.note(connected=True)
    assert scene.run(100) == []


def test_it_is_tried_as_soon_as_the_back_off_allows_and_at_another_address_at_once() -> None:
    scene = Scene({})
    scene.note()
    attempts = scene.run(10, retry_in=0.4)
    assert [round(when, 3) for when, _ in attempts] == [round(0.4 * n, 3) for n in range(25)] + [10.0]
    assert scene.run(0.3) == []  # under way: it is not known yet how it ended
    scene.note(master="a:2")
    assert scene.lookout.due().brokers == (A,)
    scene.lookout.failed(A, "a:1", 0.0)  # the old address's failure says nothing about the new one
    assert scene.lookout.wake_at() == float("inf")
    scene.lookout.failed(A, "a:2", 1.0)
    assert scene.lookout.wake_at() == scene.now + 1.0


def test_a_broker_that_comes_and_goes_is_not_run_after() -> None:
    scene = Scene()
    tried = looked = 0
    for _ in range(1000):  # a hundred seconds
        scene.note()
        due = scene.lookout.due()
        tried += len(due.brokers)
        looked += "T" in due.topics
        scene.note(connected=True)
        scene.now += 0.1
    assert 50 <= tried <= 201
    assert 50 <= looked <= 201


def test_one_that_no_route_names_is_looked_for_a_while_and_then_given_up() -> None:
    scene = Scene()
    scene.note()
    scene.change("T", NOBODY)
    scene.change("U", NOBODY)
    scene.note(named=False)
    assert (scene.lookout.away, scene.lookout.unnamed) == (HERE, HERE)
    done = scene.run(KEPT - 1, retry_in=0.5)
    assert max(when for when, what in done if what == A) < BELIEVED  # the address may be somebody else's by then
    assert max(when for when, what in done if what != A) > KEPT - 3
    assert scene.lookout.given_up() == []
    scene.now += 1
    assert scene.lookout.given_up() == [A]
    assert scene.run(100) == []
    scene.lookout.forget(A)
    assert scene.lookout.away == frozenset()


def test_one_that_no_route_names_is_kept_as_long_as_it_is_connected() -> None:
    scene = Scene()
    scene.change("T", NOBODY)
    scene.change("U", NOBODY)
    scene.note(named=False, connected=True)
    assert (scene.lookout.away, scene.lookout.unnamed) == (NOBODY, HERE)
    assert {what for _, what in scene.run(2 * KEPT)} == {"T", "U"}  # looked for, not connected to
    assert scene.run(100) == []
    assert scene.lookout.given_up() == []
    scene.note(named=False, connected=False)
    assert scene.lookout.due().brokers == (A,)
    scene.now += KEPT - 1
    assert scene.lookout.given_up() == []
    scene.now += 1
    assert scene.lookout.given_up() == [A]


def test_without_a_master_there_is_nobody_to_connect_to() -> None:
    scene = Scene()
    scene.note()
    scene.lookout.due()
    scene.note(master=None, named=False)
    assert {what for _, what in scene.run(10)} == {"T", "U"}
    scene.note(master="a:2")
    assert scene.lookout.due().brokers == (A,)


def test_what_one_topic_finds_out_the_others_ask_about() -> None:
    names = [f"T{n}" for n in range(100)]
    scene = Scene(dict.fromkeys(names, HERE))
    scene.note()
    asked = scene.lookout.due().topics
    assert len(asked) == TOPICS_A_LOOK  # and as long as these find nothing the others are left in peace
    began = scene.now
    learnt: dict[str, float] = {}
    questions = 0
    while len(learnt) < len(names):
        for topic in asked:
            if topic not in learnt:
                learnt[topic] = scene.now - began
                scene.change(topic, NOBODY)
        scene.now = max(scene.now + 0.01, scene.lookout.wake_at())
        asked = scene.lookout.due().topics
        questions += len(asked)
    assert max(learnt.values()) < 10
    assert questions < 1.3 * len(names)  # hardly any is asked for twice
    # It is back: whoever asks first finds it, and the others follow.
    scene.note(named=False)
    scene.run(20)
    scene.change("T7", HERE)
    scene.note(connected=True)
    assert {what for _, what in scene.run(10)} == {*names} - {"T7"}
    assert scene.run(100) == []


def test_one_topic_at_a_time_stands_for_those_that_have_lost_a_broker() -> None:
    scene = Scene()
    scene.note()
    scene.lookout.due()
    scene.change("T", NOBODY)
    scene.change("U", NOBODY)
    scene.note(named=False)
    assert scene.lookout.due().topics == ()
    asked = [what for _, what in scene.run(60) if what != A]
    turns = [len(list(turn)) for _, turn in itertools.groupby(asked)]
    assert len(turns) > 5
    assert set(turns[1:-1]) == {5}


def test_one_that_is_back_is_looked_for_until_the_routes_say_so() -> None:
    scene = Scene()
    scene.note()
    scene.lookout.due()
    scene.change("T", NOBODY)
    scene.note(connected=True)  # before the name server knew it again; another topic's route never lost it
    assert scene.lookout.away == scene.lookout.unnamed == frozenset()
    assert [what for _, what in scene.run(10)].count("T") >= 10
    scene.change("T", HERE)
    assert scene.run(100) == []
    scene.note()  # gone again
    scene.change("T", NOBODY)
    scene.note(connected=True)
    assert BELIEVED - 1 < max(when for when, _ in scene.run(1000)) <= BELIEVED  # it was taken from it for good
    scene.lookout.given_up()
    assert not scene.lookout._away


def test_a_topic_taken_from_a_broker_that_is_there_costs_a_few_questions() -> None:
    scene = Scene({f"T{n}": HERE for n in range(100)})
    scene.note(connected=True)
    scene.change("T50", NOBODY)
    assert len(scene.run(1000)) == TOPICS_A_LOOK
    assert scene.lookout.given_up() == []


def test_a_lost_slave_makes_a_few_topics_ask() -> None:
    scene = Scene({f"T{n}": HERE for n in range(100)})
    scene.lookout.suspect(A)
    assert [what for _, what in scene.run(100)] == ["T0", "T1", "T2"]


def test_topics_that_are_no_longer_in_use_are_not_asked_for() -> None:
    scene = Scene()
    scene.note()
    scene.change("U", NOBODY)
    scene.lookout.forget_topic("U")
    del scene.topics["U"]
    assert {what for _, what in scene.run(10)} == {"T", A}


@UNTIMED
@given(
    st.integers(0, 1_000_000),
    st.lists(st.tuples(st.integers(0, 39), st.booleans(), st.booleans(), st.floats(0, 0.3)), max_size=60),
)
def test_however_many_are_away_the_name_server_is_not_flooded(
    seed: int, events: list[tuple[int, bool, bool, float]]
) -> None:
    brokers = [f"broker-{n}" for n in range(40)]
    scene = Scene({f"T{n}": frozenset({brokers[n % 40], brokers[n % 7]}) for n in range(400)}, seed)
    asked: list[float] = []
    for number, named, connected, pause in events:
        scene.note(brokers[number], f"{number}:1", named=named, connected=connected)
        scene.change(f"T{number}", frozenset({brokers[number]}) if named else NOBODY)
        start = scene.now
        done = scene.run(pause, retry_in=0.1)
        asked += [start + when for when, what in done if what.startswith("T")]
    start = scene.now
    asked += [start + when for when, what in scene.run(5, retry_in=0.1) if what.startswith("T")]
    for index, when in enumerate(asked):
        # Any stretch of a window's length touches two windows at most.
        assert sum(1 for other in asked[index:] if other < when + WINDOW) <= 2 * A_WINDOW


@pytest.mark.parametrize("away", [1, 10, 40])
def test_every_broker_that_is_away_gets_its_turn(away: int) -> None:
    scene = Scene({f"T{n}": frozenset({f"broker-{n}"}) for n in range(away)})
    for number in range(away):
        scene.note(f"broker-{number}", f"{number}:1")
    assert {what for _, what in scene.run(3) if what.startswith("T")} == {f"T{n}" for n in range(away)}
