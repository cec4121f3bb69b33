"""The routes of the topics in use, kept fresh.

Whoever asks for a topic's route gets the one at hand, or waits for it to be fetched; however many ask at once, it is
fetched once. From then on the topic is in use and is refreshed every half minute, each topic on its own and a little
off the beat, so that neither a slow answer for one topic delays another nor a thousand clients ask in the same instant.
A topic that nobody has asked about for a while, and nobody watches, is let go.

A topic that the name server no longer knows keeps its last route, as in Java: brokers that restart are gone from
the name server for a moment, and a consumer that dropped all its queues each time would do more harm than one that
tries a dead address. Listeners hear of a route only when it differs from the one before (`routes.changed`).
"""

from __future__ import annotations

import asyncio
import logging
import random as random_numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.client.errors import ClientClosed, NoRoute, RocketMQError
from rocketfleet.client.routing.routes import changed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from rocketfleet.wire.bodies import TopicRouteData

_log = logging.getLogger(__name__)
_NOT_REFRESHED = "the route of topic %s was not refreshed: %s"


@dataclass(slots=True)
class _CachedTopic:
    route: TopicRouteData | None = None
    asked_at: float = 0.0
    due_at: float = 0.0
    watchers: int = 0
    failing: bool = False  # the last attempt failed, and was logged
    fetching: asyncio.Task[TopicRouteData] | None = None


def next_refresh(now: float, interval: float, random: Callable[[], float]) -> float:
    """When to refresh next: the interval, give or take a fifth."""
    return now + interval * (0.8 + 0.4 * random())


class RouteCache:
    """See the module. `fetch` gets the route of a topic from the name servers."""

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[TopicRouteData]],
        *,
        clock: Callable[[], float],
        refresh: float = 30.0,
        expiry: float = 600.0,
        random: Callable[[], float] = random_numbers.random,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._interval = refresh
        self._expiry = expiry
        self._random = random
        self._topics: dict[str, _CachedTopic] = {}
        self._listeners: list[Callable[[str, TopicRouteData | None, TopicRouteData], None]] = []

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics in use."""
        return tuple(self._topics)

    def cached(self, topic: str) -> TopicRouteData | None:
        """The route at hand, without asking anybody."""
        entry = self._topics.get(topic)
        if entry is None:
            return None
        entry.asked_at = self._clock()
        return entry.route

    def routes(self) -> dict[str, TopicRouteData]:
        """All routes at hand, by topic."""
        return {topic: entry.route for topic, entry in self._topics.items() if entry.route is not None}

    def in_use(self) -> Iterator[tuple[str, TopicRouteData]]:
        """The same one by one, for who needs only the first few of thousands. Not to be kept over an `await`."""
        return ((topic, entry.route) for topic, entry in self._topics.items() if entry.route is not None)

    async def get(self, topic: str) -> TopicRouteData:
        """The route at hand, or fetched if there is none; NoRoute if the topic does not exist."""
        return self.cached(topic) or await self.refresh(topic)

    async def refresh(self, topic: str) -> TopicRouteData:
        """Fetch the route now. Whoever comes while it is being fetched gets that same answer."""
        entry = self._entry(topic)
        fetching = self._start(topic, entry)
        try:
            # Shielded: one caller that gives up must not take the answer from the others.
            return await asyncio.shield(fetching)
        except asyncio.CancelledError:
            if fetching.cancelled():  # it was not the caller who was cancelled
                raise ClientClosed from None
            raise

    def hurry(self, topic: str) -> bool:
        """Refresh a topic in use now rather than at its time, in the background. False if it is not in use.

        This is the cache's own care, so it does not count as somebody's asking for the topic.
        """
        entry = self._topics.get(topic)
        if entry is None:
            return False
        self._start(topic, entry)
        return True

    def watch(self, topic: str) -> Callable[[], None]:
        """Keep a topic in use until the function returned is called."""
        entry = self._entry(topic)
        entry.watchers += 1
        over = False

        def release() -> None:
            nonlocal over
            if not over:
                over = True
                entry.watchers -= 1

        return release

    def on_change(self, listener: Callable[[str, TopicRouteData | None, TopicRouteData], None]) -> Callable[[], None]:
        """Be told of each route that is new or different: topic, former route (None at first), new one.

        The function returned ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def run(self) -> None:
        """Keep the routes fresh until cancelled."""
        while True:
            now = self._clock()
            self.expire(now)
            for topic, entry in self._topics.items():
                if entry.due_at <= now:
                    self._start(topic, entry)
            due = [entry.due_at for entry in self._topics.values() if entry.fetching is None]
            await asyncio.sleep(min(1.0, max(0.05, min(due, default=1.0 + now) - now)))

    def expire(self, now: float) -> None:
        """Let go of topics that nobody uses."""
        idle = [
            topic
            for topic, entry in self._topics.items()
            if not entry.watchers and entry.fetching is None and now - entry.asked_at > self._expiry
        ]
        for topic in idle:
            del self._topics[topic]

    async def close(self) -> None:
        """Cancel what is being fetched."""
        tasks = [entry.fetching for entry in self._topics.values() if entry.fetching is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, topic: str, entry: _CachedTopic) -> asyncio.Task[TopicRouteData]:
        """Fetch the route, unless that is under way."""
        if entry.fetching is None:
            entry.fetching = asyncio.get_running_loop().create_task(self._update(topic, entry))
            entry.fetching.add_done_callback(_retrieve)
        return entry.fetching

    def _entry(self, topic: str) -> _CachedTopic:
        entry = self._topics.get(topic)
        if entry is None:
            entry = self._topics[topic] = _CachedTopic()
        entry.asked_at = self._clock()
        return entry

    async def _update(self, topic: str, entry: _CachedTopic) -> TopicRouteData:
        try:
            route = await self._fetch(topic)
        except NoRoute:
            if entry.route is None and not entry.watchers:
                self._topics.pop(topic, None)  # names that do not exist must not pile up
            raise
        except RocketMQError as error:
            # It may be tried every second while a broker is away.
            _log.log(logging.DEBUG if entry.failing else logging.INFO, _NOT_REFRESHED, topic, error)
            entry.failing = True
            raise
        finally:
            entry.fetching = None
            entry.due_at = next_refresh(self._clock(), self._interval, self._random)
        entry.failing = False
        before = entry.route
        if changed(before, route):
            entry.route = route
            for listener in tuple(self._listeners):
                try:
                    listener(topic, before, route)
                except Exception:
                    _log.exception("a listener to routes failed on topic %s", topic)
            return route
        return before if before is not None else route


def _retrieve(task: asyncio.Task[TopicRouteData]) -> None:
    """Mark the error as seen: callers get it through their shield, and if they have all gone nobody needs it."""
    if not task.cancelled():
        task.exception()
