"""Who watches whom: a ring."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.watch import watched_by


@given(st.sets(st.text(min_size=1), min_size=2, max_size=20))
def test_everybody_is_watched_by_exactly_one_other(members: set[str]) -> None:
    watched = [watched_by(member, members) for member in members]
    assert sorted(member for member in watched if member is not None) == sorted(members)
    assert all(other != member for member, other in zip(members, watched, strict=True))


@given(st.sets(st.text(min_size=1), min_size=2, max_size=20), st.randoms())
def test_the_order_of_the_list_does_not_matter(members: set[str], random: object) -> None:
    listed = list(members)
    random.shuffle(listed)  # type: ignore[attr-defined]  # hypothesis does not export the type
    assert [watched_by(member, listed) for member in sorted(members)] == [
        watched_by(member, members) for member in sorted(members)
    ]


def test_nobody_watches_alone_or_from_outside() -> None:
    assert watched_by("a", ["a"]) is None
    assert watched_by("a", []) is None
    assert watched_by("x", ["a", "b"]) is None
    assert watched_by("a", ["a", "b", "c"]) == "c"
    assert watched_by("c", ["c", "a", "b"]) == "b"
