"""Every sentence of the judge: a history that deserves it, and one that hardly differs and does not."""

import pytest
from tests.broker.replay.judge import Done, Handled, History, Seen, judge
from tests.broker.replay.script import COMMIT, LOCK, RELEASE, UNLOCK, Prediction

PLAIN = Prediction(("m0",), ("m0", "m1"), clean=False, steady=False, forgets=False, rewound=False, excused=False)


def granted(member: str, at: float) -> Seen:
    return Seen(member, LOCK, at, at + 0.01, frozenset({0}), frozenset({0}), member)


def unlocked(member: str, at: float) -> Seen:
    return Seen(member, UNLOCK, at, at + 0.01, frozenset({0}), name=member)


def committed(member: str, offset: int, at: float) -> Seen:
    return Seen(member, COMMIT, at, at + 0.01, frozenset({0}), offset=offset)


def handled(member: str, offset: int, at: float, until: float | None = None) -> Handled:
    return Handled(member, 0, offset, f"n{offset}", at, at + 0.01 if until is None else until)


def of(*facts: Seen | Handled | Done, **more: object) -> History:
    history = History(lives=60.0, **more)  # type: ignore[arg-type]
    for fact in facts:
        if isinstance(fact, Seen):
            history.seen.append(fact)
        elif isinstance(fact, Handled):
            history.handled.append(fact)
        else:
            history.done.append(fact)
    return history


GOOD_HANDOVER = (
    granted("m1", 1.0),
    handled("m1", 0, 1.1),
    committed("m1", 1, 1.2),
    unlocked("m1", 1.3),
    granted("m0", 1.4),
    handled("m0", 1, 1.5),
    committed("m0", 2, 1.6),
)


def test_a_good_handover() -> None:
    assert judge(of(*GOOD_HANDOVER), PLAIN._replace(clean=True, steady=True)) == []


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ((granted("m0", 1.0), handled("m1", 3, 2.0)), "q0 has two owners: m1 begins 3, and m0 has its lock"),
        ((granted("m0", 1.0), committed("m1", 3, 2.0)), "m1 commits 3 of q0, and m0 has its lock"),
        ((committed("m0", 5, 1.0), committed("m0", 4, 2.0)), "m0 commits 4 of q0, after 5 of m0's"),
        ((committed("m0", 5, 1.0), handled("m1", 4, 2.0)), "4 of q0 is begun by m1, though the group is at 5"),
        ((handled("m0", 1, 1.0, 3.0), handled("m1", 2, 2.0)), "2 of q0 is begun by m1 while m0 has 1"),
    ],
)
def test_what_must_not_be(facts: tuple[Seen | Handled, ...], sentence: str) -> None:
    assert judge(of(*facts), PLAIN) == [sentence]


@pytest.mark.parametrize(
    "facts",
    [
        (granted("m0", 1.0), unlocked("m0", 1.5), handled("m1", 3, 2.0)),
        (granted("m0", 1.0), Seen("m2", RELEASE, 1.5, None, frozenset({0}), name="m0"), handled("m1", 3, 2.0)),
        (granted("m0", 1.0), Done("restart", 1.2, 1.4), handled("m1", 3, 2.0)),
        (granted("m0", 1.0), handled("m1", 3, 62.0)),
        (granted("m0", 1.0), Done("wake", 2.0, 2.0, "m1"), handled("m1", 3, 2.01)),
        (granted("m0", 1.0), unlocked("m0", 1.5), committed("m1", 3, 2.0)),
        (committed("m0", 5, 1.0), Done("restart", 1.2, 1.4), committed("m0", 4, 2.0)),
        (committed("m0", 5, 1.0), Done("rewind", 1.2, 1.3, queue=0, offset=4), handled("m1", 4, 2.0)),
        (handled("m0", 1, 1.0, 3.0), Done("cut", 1.5, 1.5, "m0"), handled("m1", 2, 2.0)),
    ],
)
def test_what_may_be(facts: tuple[Seen | Handled | Done, ...]) -> None:
    assert judge(of(*facts), PLAIN) == []


def test_an_offset_that_is_found_lower_than_before() -> None:
    found = [(1.0, 0, 5), (1.1, 0, 4)]
    assert judge(of(stored=found), PLAIN) == ["q0's offset goes back from 5 to 4"]
    assert judge(of(Done("restart", 1.05, 1.06), stored=found), PLAIN) == []


def test_a_repetition_counts_where_there_must_be_none() -> None:
    twice = of(handled("m0", 1, 1.0), handled("m0", 1, 2.0))
    assert judge(twice, PLAIN) == []
    assert judge(twice, PLAIN._replace(clean=True)) == ["1 of q0 is begun 2 times"]


def test_a_queue_that_is_taken_from_somebody_who_lives() -> None:
    taken = (granted("m1", 1.0), granted("m0", 2.0))
    assert judge(of(*taken), PLAIN) == []
    steady = PLAIN._replace(steady=True)
    assert judge(of(*taken), steady) == ["q0 is taken from m1, who lives, by m0"]
    assert judge(of(*taken, unlocked("m1", 1.5)), steady) == []
    assert judge(of(*taken, Done("kill", 1.5, 1.5, "m1")), steady) == []


def test_what_was_sent_and_never_finished_is_lost_unless_it_was_history() -> None:
    sent = {"n1": 1.0, "n2": 1.1, "n3": 1.2}
    assert judge(of(handled("m0", 2, 2.0), sent=sent), PLAIN) == ["2 messages are lost: n1, n3"]
    assert judge(of(handled("m0", 2, 2.0), handled("m0", 3, 2.1), sent=sent, due_since=1.05), PLAIN) == []


def test_history_must_not_be_begun() -> None:
    assert judge(of(handled("m0", 0, 1.0), old=1), PLAIN) == ["0 of q0 is history, and m0 begins it"]
    assert judge(of(handled("m0", 1, 1.0), old=1), PLAIN) == []


def test_where_a_group_begins_is_written_by_whoever_has_the_lock_of_that() -> None:
    facts = (granted("m0", 1.0), committed("m1", 3, 2.0))
    assert judge(of(*facts, due_since=3.0), PLAIN) == []


def test_what_came_before_a_rewind_comes_again() -> None:
    facts = (handled("m0", 0, 1.0), handled("m0", 1, 1.1), Done("rewind", 2.0, 2.1, queue=0, offset=0))
    undone = of(*facts, handled("m0", 1, 3.0))
    assert judge(undone, PLAIN) == ["q0 was rewound to 0, and 0 did not come again"]
    assert judge(undone, PLAIN._replace(excused=True)) == []
    assert judge(of(*facts, handled("m0", 0, 2.9), handled("m0", 1, 3.0)), PLAIN) == []
