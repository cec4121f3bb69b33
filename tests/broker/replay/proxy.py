"""A proxy between one member and one broker that understands what passes: it holds, delays, drops, resets by request.

It cuts both directions into frames and decodes each (`rocketfleet.wire`), so a rule can say which requests it means, or
whose answers; what no rule means passes as it came, byte for byte. A request that is held does not hold up others: on
release it arrives after what was sent later, as it may where a broker has many threads. Of the requests that one rule
holds only the newest is kept, unless it says otherwise: whoever repeats himself has given the earlier one up, and that
one is lost.

A `shut` proxy refuses connections, as a host does on which nobody listens; its port stays its own.

    rule = proxy.add(Rule(lambda request: request.code == RequestCode.LOCK_BATCH_MQ, Do.HOLD))
    ...
    proxy.release(rule)
"""

import asyncio
import itertools
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from rocketfleet.wire.command import Command, decode
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.frame import FrameDecoder

_CHUNK = 64 * 1024
_LENGTH = struct.Struct(">i")
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close by RST
_numbers = itertools.count()


class Do(Enum):
    """What becomes of a request, or of its answer."""

    HOLD = auto()  # until `release`
    DELAY = auto()  # for `seconds`
    DROP = auto()
    RESET = auto()  # and the connection with it


class Of(Enum):
    """Which direction a rule is about."""

    REQUEST = auto()
    ANSWER = auto()


@dataclass(eq=False, slots=True)
class Passage:
    """One request of the member's, and what became of it. Times are monotonic; None: not yet, or never."""

    command: Command
    arrived: float
    number: int = field(default_factory=lambda: next(_numbers))
    forwarded: float | None = None  # to the broker
    answered: float | None = None  # by the broker, whether or not the member heard it
    answer: Command | None = None
    heard: bool = False  # by the member
    facts: object = None  # what an observer has made of it


@dataclass(eq=False, slots=True)
class Rule:
    """`count`: for so many requests, then it is over. `newest`: of what is held only the newest is kept."""

    means: Callable[[Passage], bool]
    do: Do
    of: Of = Of.REQUEST
    count: int | None = None
    seconds: float = 0.0
    newest: bool = True
    met: list[Passage] = field(default_factory=list)
    held: "list[tuple[_Link, bytes, Passage | None]]" = field(default_factory=list)


Rewrite = Callable[[Command, Command | None], bytes | None]
"""A request, and its answer if that is what passes; returns the frame that goes on in its place, if any."""


class Proxy:
    """See the module. `upstream` is asked at each connection."""

    def __init__(
        self,
        upstream: str,
        *,
        observe: Callable[[Passage], None] = lambda passage: None,
        rewrite: Rewrite = lambda request, answer: None,
    ) -> None:
        self.upstream = upstream
        self._observe = observe
        self._rewrite = rewrite
        self._rules: list[Rule] = []
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._place = _bound(0)  # keeps the port while nobody listens
        self.port: int = self._place.getsockname()[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connected(self) -> int:
        """How many connections there are."""
        return len(self._links)

    async def open(self) -> None:
        """Listen."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=_bound(self.port))

    async def shut(self) -> None:
        """Reset all connections, and refuse others."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.reset()

    async def reset(self) -> None:
        """Reset all connections. What is held on them is lost."""
        links = list(self._links)
        for link in links:
            link.reset()
        await asyncio.gather(*(link.ended.wait() for link in links))

    async def close(self) -> None:
        """For good."""
        await self.shut()
        self._place.close()

    # -- rules --------------------------------------------------------------------------------------------------------

    def add(self, rule: Rule) -> Rule:
        """From now on. Of several rules that mean a request the first counts."""
        self._rules.append(rule)
        return rule

    def release(self, rule: Rule) -> None:
        """End a rule; what it holds goes on its way."""
        if rule in self._rules:
            self._rules.remove(rule)
        held, rule.held = rule.held, []
        for link, frame, passage in held:
            link.forward(frame, passage)

    def let(self, rule: Rule) -> None:
        """Let what is held go on its way, and hold what comes next."""
        held, rule.held = rule.held, []
        for link, frame, passage in held:
            link.forward(frame, passage)

    def rule_for(self, passage: Passage, of: Of) -> Rule | None:
        """The rule that means a request or its answer; it is used up by that if it counts."""
        for rule in self._rules:
            if rule.of is of and rule.means(passage):
                if rule.count is not None:
                    rule.count -= 1
                    if not rule.count:
                        self._rules.remove(rule)
                rule.met.append(passage)
                return rule
        return None

    def seen(self, passage: Passage) -> None:
        """Something has happened to a request."""
        self._observe(passage)

    def rewritten(self, request: Command, answer: Command | None) -> bytes | None:
        return self._rewrite(request, answer)

    # -- connections --------------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self, writer)
        self._links.add(link)
        try:
            await link.run(reader)
        finally:
            self._links.discard(link)
            link.ended.set()


class _Link:
    """One connection of the member's, and ours to the broker behind it. One task sees to both directions."""

    def __init__(self, proxy: Proxy, member: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._member = member
        self._broker: asyncio.StreamWriter | None = None
        self._asked: dict[int, Passage] = {}
        self._over = asyncio.Event()
        self.ended = asyncio.Event()

    async def run(self, from_member: asyncio.StreamReader) -> None:
        host, _, port = self._proxy.upstream.rpartition(":")
        try:
            from_broker, self._broker = await asyncio.open_connection(host, int(port))
        except OSError:
            _reset(self._member)
            return
        both = [
            asyncio.ensure_future(self._pump(from_member, self._from_member)),
            asyncio.ensure_future(self._pump(from_broker, self._from_broker)),
            asyncio.ensure_future(self._over.wait()),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._over.set()
            _reset(self._member)
            self._broker.close()  # in good order: what was forwarded is handled

    def reset(self) -> None:
        _reset(self._member)
        self._over.set()

    async def _pump(self, reader: asyncio.StreamReader, take: Callable[[bytes, Command], None]) -> None:
        decoder = FrameDecoder()
        while chunk := await reader.read(_CHUNK):
            for payload in decoder.feed(chunk):
                frame = _LENGTH.pack(len(payload)) + payload
                try:
                    command = decode(payload)
                except WireError:
                    self._over.set()
                    raise
                command.body = bytes(command.body)
                take(frame, command)

    def _from_member(self, frame: bytes, command: Command) -> None:
        if command.is_response or command.is_oneway:
            self._write(self._broker, frame)
            return
        passage = Passage(command, time.monotonic())
        frame = self._proxy.rewritten(command, None) or frame
        self._proxy.seen(passage)
        rule = self._proxy.rule_for(passage, Of.REQUEST)
        if rule is None:
            self.forward(frame, passage)
        else:
            self._do(rule, frame, passage, self.forward)

    def _from_broker(self, frame: bytes, command: Command) -> None:
        passage = self._asked.pop(command.opaque, None) if command.is_response else None
        if passage is None:
            self._write(self._member, frame)
            return
        passage.answered, passage.answer = time.monotonic(), command
        frame = self._proxy.rewritten(passage.command, command) or frame
        self._proxy.seen(passage)
        rule = self._proxy.rule_for(passage, Of.ANSWER)
        if rule is None:
            self._answer(frame, passage)
        else:
            self._do(rule, frame, passage, self._answer)

    def _do(self, rule: Rule, frame: bytes, passage: Passage, go_on: Callable[[bytes, Passage], None]) -> None:
        if rule.do is Do.RESET:
            self.reset()
        elif rule.do is Do.DELAY:
            asyncio.get_running_loop().call_later(rule.seconds, go_on, frame, passage)
        elif rule.do is Do.HOLD:
            if rule.newest:
                rule.held.clear()
            rule.held.append((self, frame, passage))

    def forward(self, frame: bytes, passage: Passage | None) -> None:
        """On to the broker; or to the member, if it is an answer."""
        if passage is not None and passage.answered is not None:
            self._answer(frame, passage)
            return
        if passage is not None and self._broker is not None and not self._over.is_set():
            passage.forwarded = time.monotonic()
            self._asked[passage.command.opaque] = passage
            self._proxy.seen(passage)
        self._write(self._broker, frame)

    def _answer(self, frame: bytes, passage: Passage) -> None:
        passage.heard = True
        self._write(self._member, frame)

    def _write(self, writer: asyncio.StreamWriter | None, frame: bytes) -> None:
        if writer is not None and not writer.is_closing() and not self._over.is_set():
            writer.write(frame)


def _bound(port: int) -> socket.socket:
    """A socket at a port that others of ours may share; it refuses connections until it listens."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    return made


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    writer.transport.abort()
