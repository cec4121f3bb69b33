"""The cache of routes: fetched once however many ask, refreshed while in use, kept when the name server is away."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import Clock
from tests.support.waiting import UNTIMED, until

from rocketfleet.client.errors import ClientClosed, ConnectError, NoRoute
from rocketfleet.client.routing.route_cache import RouteCache, next_refresh
from rocketfleet.wire.bodies import QueueData, TopicRouteData


def route(queues: int) -> TopicRouteData:
    return TopicRouteData((QueueData("broker-a", queues, queues, 6),))


class Source:
    """A name server of the test's making."""

    def __init__(self) -> None:
        self.routes: dict[str, TopicRouteData | Exception] = {}
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def fetch(self, topic: str) -> TopicRouteData:
        self.asked.append(topic)
        if self.gate is not None:
            await self.gate.wait()
        found = self.routes.get(topic, NoRoute(topic, "unknown"))
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(source: Source, clock: Clock) -> RouteCache:
    return RouteCache(source.fetch, clock=clock, refresh=30.0, expiry=600.0, random=lambda: 0.5)


async def test_asked_once_however_many_want_it(cache: RouteCache, source: Source) -> None:
    source.routes["T"] = route(4)
    source.gate = asyncio.Event()
    calls = [asyncio.create_task(cache.get("T")) for _ in range(10)]
    calls.append(asyncio.create_task(cache.refresh("T")))
    await until(lambda: source.asked)
    calls[0].cancel()  # the one that started it leaves; the others do not notice
    source.gate.set()
    assert [await call for call in calls[1:]] == [route(4)] * 10
    assert await cache.get("T") == route(4)
    assert source.asked == ["T"]
    assert await cache.refresh("T") == route(4)
    assert source.asked == ["T", "T"]


def _broken(*_: object) -> None:
    raise RuntimeError("broken")


async def test_listeners_hear_only_of_changes(cache: RouteCache, source: Source) -> None:
    heard: list[tuple[str, TopicRouteData | None, TopicRouteData]] = []
    cache.on_change(_broken)  # a listener that fails takes nothing from the others
    stop = cache.on_change(lambda *change: heard.append(change))
    source.routes["T"] = route(4)
    first = await cache.get("T")
    assert await cache.refresh("T") is first
    source.routes["T"] = route(8)
    await cache.refresh("T")
    assert heard == [("T", None, route(4)), ("T", route(4), route(8))]
    stop()
    source.routes["T"] = route(9)
    await cache.refresh("T")
    assert len(heard) == 2


async def test_a_topic_that_does_not_exist_leaves_no_trace(cache: RouteCache) -> None:
    for _ in range(3):
        with pytest.raises(NoRoute):
            await cache.get("X")
    assert cache.topics == ()


async def test_the_last_route_outlives_the_name_server(cache: RouteCache, source: Source) -> None:
    source.routes["T"] = route(4)
    await cache.get("T")
    for trouble in (NoRoute("T", "its brokers restart"), ConnectError("n:1", "refused")):
        source.routes["T"] = trouble
        with pytest.raises(type(trouble)):
            await cache.refresh("T")
        assert await cache.get("T") == route(4)


async def _one_round(cache: RouteCache) -> None:
    """Let the background task look once at what is due, and what it started end."""
    task = asyncio.create_task(cache.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await until(lambda: all(entry.fetching is None for entry in cache._topics.values()))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_topics_in_use_are_refreshed_when_they_are_due(cache: RouteCache, source: Source, clock: Clock) -> None:
    source.routes.update(A=route(1), B=route(2))
    await cache.get("A")
    clock.now += 20
    await cache.get("B")
    source.asked.clear()
    await _one_round(cache)
    assert source.asked == []
    clock.now += 11
    await _one_round(cache)
    assert source.asked == ["A"]
    clock.now += 20
    source.routes["A"] = ConnectError("n:1", "refused")
    await _one_round(cache)
    assert source.asked == ["A", "B"]
    clock.now += 31
    await _one_round(cache)
    assert source.asked == ["A", "B", "A", "B"]  # one that fails is asked again at its time


async def test_a_slow_topic_delays_no_other(cache: RouteCache, source: Source, clock: Clock) -> None:
    source.routes.update(A=route(1), B=route(2))
    await cache.get("A")
    await cache.get("B")
    clock.now += 31
    source.asked.clear()
    source.gate = asyncio.Event()
    task = asyncio.create_task(cache.run())
    await until(lambda: source.asked == ["A", "B"])  # B is asked although A has not answered
    source.gate.set()
    await until(lambda: all(entry.fetching is None for entry in cache._topics.values()))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_topics_that_nobody_uses_are_let_go(cache: RouteCache, source: Source, clock: Clock) -> None:
    source.routes.update(A=route(1), B=route(2), W=route(3))
    for topic in ("A", "B", "W"):
        await cache.get(topic)
    release = cache.watch("W")
    clock.now += 400
    cache.cached("B")
    clock.now += 300
    cache.expire(clock.now)
    assert set(cache.topics) == {"B", "W"}
    release()
    release()  # twice is as good as once
    cache.expire(clock.now)
    assert set(cache.topics) == {"B"}


async def test_a_watched_topic_that_does_not_exist_yet_appears(cache: RouteCache, source: Source, clock: Clock) -> None:
    cache.watch("T")
    with pytest.raises(NoRoute):
        await cache.get("T")
    source.routes["T"] = route(4)
    heard: list[str] = []
    cache.on_change(lambda topic, *_: heard.append(topic))
    clock.now += 60
    await _one_round(cache)
    assert heard == ["T"]


async def test_close_ends_what_is_under_way(cache: RouteCache, source: Source) -> None:
    source.gate = asyncio.Event()
    call = asyncio.create_task(cache.get("T"))
    await until(lambda: source.asked)
    await cache.close()
    with pytest.raises(ClientClosed):
        await call


@UNTIMED
@given(st.floats(0, 1e6), st.floats(0.1, 1e3), st.floats(0, 1, exclude_max=True))
def test_refreshes_keep_near_the_interval(now: float, interval: float, draw: float) -> None:
    wait = next_refresh(now, interval, lambda: draw) - now
    assert interval * 0.79 <= wait <= interval * 1.21
