"""The cache: newer replaces older, whatever order they come in, and what is gone stays gone."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rocketfleet.controller.kube.cache import Cache

NAME = ("default", "a")


def thing(version: int, uid: str = "u", name: str = "a", **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "default", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "value": version, **more}


def make() -> Cache[int]:
    return Cache(lambda raw: None if raw.get("foreign") else raw["value"])


def held(cache: Cache[int]) -> int | None:
    entry = cache.get(NAME)
    return None if entry is None else entry.value


def test_an_older_version_is_no_news() -> None:
    cache = make()
    assert cache.put(thing(5))
    assert not cache.put(thing(4))
    assert not cache.put(thing(5))
    assert held(cache) == 5
    assert cache.put(thing(60))  # by number, not by text
    assert held(cache) == 60


def test_a_late_event_does_not_bring_back_what_is_gone() -> None:
    cache = make()
    cache.put(thing(5))
    assert cache.drop(NAME, "u")
    assert not cache.put(thing(4))
    assert not cache.put(thing(6))
    assert held(cache) is None


def test_the_deletion_of_an_earlier_incarnation_does_not_touch_the_present_one() -> None:
    cache = make()
    cache.put(thing(5, "old"))
    cache.put(thing(9, "new"))
    assert not cache.drop(NAME, "old")
    assert held(cache) == 9
    assert not cache.put(thing(7, "old"))


def test_a_list_removes_what_it_does_not_hold_unless_that_is_newer() -> None:
    cache = make()
    cache.put(thing(5, "u"))
    cache.put(thing(20, "v", name="b"))
    changed = cache.replace([thing(8, "w", name="c")], "10", None)
    assert changed == {NAME, ("default", "c")}
    assert sorted(entry.name[1] for entry in cache) == ["b", "c"]


def test_a_list_of_one_namespace_says_nothing_about_others() -> None:
    cache = make()
    cache.put(thing(5))
    assert cache.replace([], "10", "elsewhere") == set()
    assert len(cache) == 1


def test_an_object_that_is_no_longer_ours_goes() -> None:
    cache = make()
    cache.put(thing(5))
    assert cache.put(thing(6, foreign=True))
    assert held(cache) is None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_in_whatever_order_events_come_the_end_is_the_same(data: st.DataObject) -> None:
    """A history of lives of one name; every event comes, in any order, some twice. What is left is its end."""
    version = 0
    events: list[tuple[str, dict[str, Any]]] = []
    alive: int | None = None
    for life in range(data.draw(st.integers(1, 3))):
        for _ in range(data.draw(st.integers(1, 3))):
            version += 1
            alive = version
            events.append(("put", thing(version, f"uid {life}")))
        if data.draw(st.booleans()) or life < 2:
            version += 1
            events.append(("drop", thing(version, f"uid {life}")))
            alive = None
    cache = make()
    for kind, raw in data.draw(st.permutations(events + events[:2])):
        if kind == "put":
            cache.put(raw)
        else:
            cache.drop(NAME, raw["metadata"]["uid"])
    assert held(cache) == alive
