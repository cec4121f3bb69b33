"""The cache: newer replaces older, whatever order they come in, and what is gone stays gone."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rocketfleet.controller.kube.api import KubeApi
from rocketfleet.controller.kube.cache import Cache
from rocketfleet.controller.kube.view import KubeView

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


def test_a_list_older_than_what_was_seen_before_it_was_asked_for_begins_anew() -> None:
    """As after a restore of etcd: versions go back, and what was deleted since the backup is there again."""
    cache = make()
    cache.put(thing(500))
    cache.put(thing(510, "v", name="b"))
    cache.drop(("default", "b"), "v")
    asked_at = cache.newest(None)
    changed = cache.replace([thing(40), thing(41, "v", name="b")], "100", None, asked_at)
    assert changed == {NAME, ("default", "b")}
    assert {entry.name[1]: entry.value for entry in cache} == {"a": 40, "b": 41}
    assert cache.put(thing(101))  # and events are heard again
    assert held(cache) == 101


def test_what_was_made_after_the_backup_is_gone_with_the_restore() -> None:
    cache = make()
    cache.put(thing(500))
    assert cache.replace([], "100", None, cache.newest(None)) == {NAME}
    assert len(cache) == 0


def test_an_empty_cache_knows_by_its_last_list_that_versions_went_back() -> None:
    cache = make()
    cache.put(thing(500))
    cache.drop(NAME, "u")
    cache.replace([], "510", None, cache.newest(None))
    cache.replace([thing(40)], "100", None, cache.newest(None))
    assert held(cache) == 40


def test_a_restore_seen_in_one_namespace_leaves_others_to_their_own_list() -> None:
    cache = make()
    cache.put(thing(500))
    cache.replace([], "100", "elsewhere", 400)
    assert held(cache) == 500
    assert cache.goes_back("100", cache.newest("default"))


def test_what_was_written_while_a_list_was_on_its_way_is_no_restore() -> None:
    cache = make()
    cache.put(thing(50))
    asked_at = cache.newest(None)
    cache.put(thing(60, "v", name="b"))  # the answer to a write of ours
    assert cache.replace([thing(50)], "55", None, asked_at) == set()
    assert sorted(entry.name[1] for entry in cache) == ["a", "b"]


def test_versions_that_are_no_numbers_do_not_freeze_an_object() -> None:
    cache = make()

    def opaque(version: str, value: int) -> dict[str, Any]:
        metadata = {"namespace": "default", "name": "a", "uid": "u", "resourceVersion": version}
        return {"metadata": metadata, "value": value}

    assert cache.put(opaque("x1", 1))
    assert not cache.put(opaque("x1", 1))
    assert cache.put(opaque("x2", 2))
    assert held(cache) == 2
    assert cache.put(opaque("3", 3))  # and numbers after them
    assert cache.replace([], "x9", None) == {NAME}
    assert cache.put(opaque("x10", 10))  # it was newer than the list


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


async def test_a_sweep_spares_etcd_and_a_gap_in_the_watch_does_not() -> None:
    asked: list[dict[str, str]] = []

    class Lists(KubeApi):
        def __init__(self) -> None: ...

        async def list_all(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
            asked.append(query)
            return [], "1"

    view = KubeView(Lists())
    await view.sync(cached=True)
    assert [query.get("resourceVersion") for query in asked] == ["0"] * 3
    asked.clear()
    await view.sync()
    assert [query.get("resourceVersion") for query in asked] == [None] * 3
