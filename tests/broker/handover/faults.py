"""Faults that are made from within a test: one member's connection to one broker is reset and stays away for a while.

The member's transport is aborted and its attempts to connect are refused; back-off and everything else is the product's
own. The broker and the other members are not touched. A `Recorder` is a handler that writes down what it was given,
when it began and when it ended, outside the product.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

from rocketfleet.client.errors import ConnectionLost
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.wire.message import ReceivedMessage

_cuts: "WeakKeyDictionary[Any, dict[str, float]]" = WeakKeyDictionary()


def cut(member: Consumer, address: str, seconds: float) -> None:
    """Reset a member's connection to an address, and let it not come back for so long. The last call counts."""
    remoting: Any = member._client.remoting
    until = _cuts.setdefault(remoting, {})
    until[address] = time.monotonic() + seconds
    if len(until) == 1 and not hasattr(remoting, "_attempt_of_the_product"):
        attempt = remoting._attempt_of_the_product = remoting._attempt

        async def refused(to: str) -> Any:
            if time.monotonic() < until.get(to, 0.0):
                remoting._attempts.pop(to, None)
                return remoting._failed(to, "Connection refused")
            return await attempt(to)

        remoting._attempt = refused
    connection = remoting._connections.get(address)
    if connection is not None:
        connection.abort(ConnectionLost(address, "reset by the test"))


@dataclass(frozen=True, slots=True)
class Handled:
    """One call of a handler; `end` is None while it runs."""

    member: str
    queue: str
    offset: int
    body: str
    begin: float
    end: float | None


class Recorder:
    """What all members of a group were given. `handler(name)` makes the handler of one member."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self._guard = threading.Lock()
        self._calls: list[list[Any]] = []

    def handler(self, member: str) -> Any:
        def handle(message: ReceivedMessage) -> None:
            call = [member, str(message.queue), message.queue_offset, message.body.decode(), time.monotonic(), None]
            with self._guard:
                self._calls.append(call)
            if self.seconds:
                time.sleep(self.seconds)
            call[5] = time.monotonic()

        return handle

    @property
    def calls(self) -> list[Handled]:
        with self._guard:
            return [Handled(*call) for call in self._calls]

    @property
    def bodies(self) -> list[str]:
        return [call.body for call in self.calls]

    def lost(self, sent: Iterable[str]) -> set[str]:
        return set(sent) - set(self.bodies)

    def repeated(self) -> dict[str, int]:
        return {body: count for body, count in Counter(self.bodies).items() if count > 1}

    def overlaps(self) -> list[tuple[Handled, Handled]]:
        """Pairs of calls on one queue that ran at the same time."""
        calls = sorted(self.calls, key=lambda call: (call.queue, call.begin))
        return [
            (one, other)
            for one, other in pairwise(calls)
            if one.queue == other.queue and (one.end is None or other.begin < one.end)
        ]

    def by(self, member: str) -> list[Handled]:
        return [call for call in self.calls if call.member == member]

    def running(self) -> int:
        return sum(call.end is None for call in self.calls)


async def for_a_while(seconds: float) -> None:
    """Let time pass where what is tested is that nothing happens in it."""
    await asyncio.sleep(seconds)
