"""Brokers that are away: what to ask the name server because of it, and whom to connect to, and when. Pure.

A broker that a client uses is away when there is no connection to its master, or when no route says where its master
is. Routes are refreshed every half minute, each client at its own time. That is too slow for both ends of an absence:
members of a group must learn at about the same moment that a broker is gone, and a broker that comes back, perhaps at
another address, must not stand unused. So for each broker that is away the routes are looked at, at once and then about
every second, and its master is connected to as soon as the back-off allows.

With thousands of topics that must not become a flood when a cluster is in trouble anyway. These bounds hold, for a
client as a whole:

- A look at a broker asks for the routes of at most `TOPICS_A_LOOK` topics that name it; the next look asks for the next
  ones. As soon as some route has lost the broker, one such topic is asked for, another one every fifth time, and
  besides one topic that still names it. Between two looks lie 0.5 to 1 s, but for the first two (an eighth to half a
  second: the name server may take a moment to notice).
- Only what a look finds makes other topics ask: when a topic's route has lost a broker, a few others that name it are
  asked for, and so on while they confirm it; when one has it again, those that have lost it are asked for.
- All of that together is at most `A_WINDOW` topics in each `WINDOW` seconds, and half of it for looks.
- A broker that comes and goes is looked at and connected to about once per second. One that is back is looked at for up
  to `BELIEVED` seconds more, while there are topics whose routes have lost it.
- A broker that no route says the master of is looked for `KEPT` seconds long, and tried at its last address `BELIEVED`
  seconds long.

Time, chance, and which topics name a broker are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from rocketfleet.base.backoff import BackoffPolicy, delay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BELIEVED: Final = 60.0  # seconds for which the last that was known of a broker counts for more than a route without it
KEPT: Final = 600.0  # seconds for which a broker that no route names is remembered and looked for
WINDOW: Final = 0.25
A_WINDOW: Final = 16
TOPICS_A_LOOK: Final = 3
_ANOTHER: Final = 5  # looks after which another topic stands for those that have lost a broker
_LOOKS: Final = BackoffPolicy(first=0.25, limit=1.0)
_SETTLED: Final = 3  # looks after which the pause between two is at its limit
_SOON: Final = 0.05
_NEVER: Final = float("inf")


class Due(NamedTuple):
    """What to do now: refresh the routes of these topics, connect to the masters of these brokers."""

    topics: tuple[str, ...]
    brokers: tuple[str, ...]


@dataclass(slots=True)
class _Away:
    """A broker that is away, or is back and some routes have not said so yet.

    `topics` is in the order in which they are asked for; what was asked goes to the end.
    """

    topics: dict[str, None]
    master: str | None
    named: bool
    connected: bool
    since: float  # when that was last different
    look_at: float
    connect_at: float
    looks: int = 0


@dataclass(slots=True)
class _Left:
    """The topics whose routes no longer say the master of a broker."""

    until: float
    topics: dict[str, None] = field(default_factory=dict)


class Lookout:
    """See the module. `naming` says which topics have a route that names a broker."""

    def __init__(
        self, *, clock: Callable[[], float], random: Callable[[], float], naming: Callable[[str], Iterable[str]]
    ) -> None:
        self._clock = clock
        self._random = random
        self._naming = naming
        self._away: dict[str, _Away] = {}
        self._left: dict[str, _Left] = {}
        self._suspected: dict[str, None] = {}  # topics to ask for because of what another one's route has said
        self._looked: dict[str, float] = {}  # broker → when it was looked at, and tried, last
        self._tried: dict[str, float] = {}
        self._window_ends = float("-inf")
        self._asked = 0  # topics in this window

    # -- what is seen -------------------------------------------------------------------------------------------------

    def note(self, broker: str, master: str | None, *, named: bool, connected: bool) -> None:
        """How it stands with a broker: its master's address as far as known, whether a route says so, and whether there
        is a connection to that address.
        """
        now = self._clock()
        away = self._away.get(broker)
        back = named and connected
        if back and (away is None or broker not in self._left):
            self._away.pop(broker, None)
            return
        if away is None:
            topics = dict.fromkeys(self._naming(broker))
            look_at, connect_at = (self._after(table, broker, now) for table in (self._looked, self._tried))
            self._away[broker] = _Away(topics, master, named, connected, now, look_at, connect_at)
            return
        lost = away.connected and not connected
        if lost:
            away.looks = 0
            away.look_at = min(away.look_at, self._after(self._looked, broker, now))
        if lost or away.named != named or (back and not away.connected):
            away.since = now
        if master != away.master:
            away.connect_at = now  # what was tried before says nothing about another address
        elif lost or (named and not away.named):
            away.connect_at = min(away.connect_at, self._after(self._tried, broker, now))
        away.master, away.named, away.connected = master, named, connected

    def route_changed(self, topic: str, before: frozenset[str], now: frozenset[str]) -> None:
        """A topic's route has changed: the brokers whose masters it named, and those whose masters it names."""
        until = self._clock() + KEPT
        self._suspected.pop(topic, None)  # it was asked for just now
        for broker in before - now:
            left = self._left.setdefault(broker, _Left(until))
            left.until = until
            left.topics[topic] = None
            if broker in self._away:
                self._away[broker].topics.pop(topic, None)
            if len(self._suspected) < A_WINDOW:
                # One topic may have been taken from the broker; with the second it is the broker.
                self.suspect(broker, TOPICS_A_LOOK if len(left.topics) == 1 else A_WINDOW)
        for broker in now - before:
            if broker in self._away:
                self._away[broker].topics[topic] = None
            came = self._left.pop(broker, None)
            if came is not None:
                came.topics.pop(topic, None)
                self._suspected.update(came.topics)

    def suspect(self, broker: str, topics: int = TOPICS_A_LOOK) -> None:
        """Something about a broker may have changed: ask for so many topics that name it."""
        self._suspected.update(dict.fromkeys(islice(self._naming(broker), topics)))

    def failed(self, broker: str, master: str, retry_in: float) -> None:
        """The master could not be connected to; the next attempt is allowed in so many seconds."""
        away = self._away.get(broker)
        if away is not None and away.master == master and not away.connected:
            away.connect_at = self._clock() + max(_SOON, retry_in)

    def forget_topic(self, topic: str) -> None:
        """The topic is no longer in use."""
        self._suspected.pop(topic, None)
        for away in self._away.values():
            away.topics.pop(topic, None)
        for left in self._left.values():
            left.topics.pop(topic, None)

    def forget(self, broker: str) -> None:
        """The broker is no longer waited for."""
        for table in (self._away, self._left, self._looked, self._tried):
            table.pop(broker, None)

    # -- what follows -------------------------------------------------------------------------------------------------

    @property
    def away(self) -> frozenset[str]:
        """The brokers to whose masters there is no connection."""
        return frozenset(broker for broker, away in self._away.items() if not away.connected)

    @property
    def unnamed(self) -> frozenset[str]:
        """The brokers whose masters no route says."""
        return frozenset(broker for broker, away in self._away.items() if not away.named)

    def given_up(self) -> list[str]:
        """The brokers to forget: no route has named them, and there has been no connection, for long enough."""
        now = self._clock()
        self._left = {broker: left for broker, left in self._left.items() if left.until > now}
        self._away = {
            broker: away
            for broker, away in self._away.items()
            if not (away.named and away.connected) or now - away.since < BELIEVED
        }
        return [
            broker
            for broker, away in self._away.items()
            if not away.named and not away.connected and now - away.since >= KEPT
        ]

    def due(self) -> Due:
        """What to do now. What is told here is taken as done."""
        now = self._clock()
        if now >= self._window_ends:
            self._window_ends, self._asked = now + WINDOW, 0
        topics: dict[str, None] = {}
        for broker, away in sorted(self._looking(now), key=lambda item: item[1].look_at):
            if away.look_at > now or self._asked + len(topics) >= A_WINDOW // 2:
                break
            away.looks += 1
            topics.update(dict.fromkeys(self._to_ask(broker, away)))
            away.look_at = now + self._pause(away.looks)
            self._looked[broker] = now
        for topic in tuple(islice(self._suspected, max(0, A_WINDOW - self._asked - len(topics)))):
            del self._suspected[topic]
            topics[topic] = None
        self._asked += len(topics)
        brokers = [broker for broker, away in self._connecting(now) if away.connect_at <= now]
        for broker in brokers:
            self._away[broker].connect_at = _NEVER  # until it is known how that ended
            self._tried[broker] = now
        return Due(tuple(topics), tuple(brokers))

    def wake_at(self) -> float:
        """When something is due next; infinity if nothing will be."""
        now = self._clock()
        looks = min((away.look_at for _, away in self._looking(now)), default=_NEVER)
        if self._asked >= A_WINDOW // 2:
            looks = max(looks, self._window_ends)
        others = _NEVER
        if self._suspected:
            others = now if self._asked < A_WINDOW else self._window_ends
        return min(looks, others, min((away.connect_at for _, away in self._connecting(now)), default=_NEVER))

    def _to_ask(self, broker: str, away: _Away) -> tuple[str, ...]:
        """The topics that a look at a broker asks for."""
        left = self._left.get(broker)
        if left is None or not left.topics:
            return _next_of(away.topics, TOPICS_A_LOOK)
        # The name server does answer for a topic that has lost the broker: one is enough to see that it is back.
        lost = next(iter(left.topics))
        if away.looks % _ANOTHER == 0:
            _next_of(left.topics, 1)
        return (lost, *_next_of(away.topics, 1))

    def _looking(self, now: float) -> list[tuple[str, _Away]]:
        """The brokers to look for in routes."""
        return [(broker, away) for broker, away in self._away.items() if self._is_looked_for(broker, away, now)]

    def _is_looked_for(self, broker: str, away: _Away, now: float) -> bool:
        if away.named and away.connected:
            return broker in self._left and now - away.since < BELIEVED
        return bool(away.topics or broker in self._left) and (away.named or now - away.since < KEPT)

    def _connecting(self, now: float) -> list[tuple[str, _Away]]:
        """The brokers to connect to."""
        return [
            (broker, away)
            for broker, away in self._away.items()
            if away.master is not None and not away.connected and (away.named or now - away.since < BELIEVED)
        ]

    def _after(self, last: dict[str, float], broker: str, now: float) -> float:
        """Now, but for a broker that had its turn a moment ago."""
        return max(now, last.get(broker, -_NEVER) + self._pause(_SETTLED))

    def _pause(self, looks: int) -> float:
        return delay(_LOOKS, looks, self._random)


def _next_of(topics: dict[str, None], count: int) -> tuple[str, ...]:
    """The first so many, which go to the end."""
    first = tuple(islice(topics, count))
    for topic in first:
        del topics[topic]
        topics[topic] = None
    return first
