"""Who watches whom: a ring."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.handover.peer_watch import watched_by

GROUPS = st.sets(st.text(min_size=1), min_size=2, max_size=20)


def first(member: str, members: set[str] | list[str]) -> str | None:
    return next(watched_by(member, members), None)


@given(GROUPS)
def test_everybody_is_watched_by_exactly_one_other(members: set[str]) -> None:
    watched = [first(member, members) for member in members]
    assert sorted(member for member in watched if member is not None) == sorted(members)
    assert all(other != member for member, other in zip(members, watched, strict=True))


@given(GROUPS)
def test_who_goes_on_looking_comes_to_everybody_else_once(members: set[str]) -> None:
    for member in members:
        assert sorted(watched_by(member, members)) == sorted(members - {member})


@given(GROUPS, st.data())
def test_every_silent_member_has_a_watcher_that_lives(members: set[str], data: st.DataObject) -> None:
    alive = data.draw(st.sets(st.sampled_from(sorted(members)), min_size=1))
    suspected: list[str] = []
    for member in alive:
        for other in watched_by(member, members):
            if other in alive:
                break
            suspected.append(other)
    assert sorted(suspected) == sorted(members - alive), "each by exactly one"


@given(GROUPS, st.randoms())
def test_the_order_of_the_list_does_not_matter(members: set[str], random: object) -> None:
    listed = list(members)
    random.shuffle(listed)  # type: ignore[attr-defined]  # hypothesis does not export the type
    for member in members:
        assert list(watched_by(member, listed)) == list(watched_by(member, members))


def test_nobody_watches_alone_or_from_outside() -> None:
    assert first("a", ["a"]) is None
    assert first("a", []) is None
    assert first("x", ["a", "b"]) is None
    assert list(watched_by("a", ["a", "b", "c"])) == ["c", "b"]
    assert list(watched_by("c", ["c", "a", "b"])) == ["b", "a"]
    assert list(watched_by("b", ["c", "a", "b"])) == ["a", "c"]
