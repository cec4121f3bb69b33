"""One connection to one peer, shared by all calls to it.

Theory. A request carries a number of our choice, `opaque`, and the answer carries it back, in any order. So a
connection is a table of numbers to futures: `submit` writes the request and enters a future, `data_received` looks the
number up and resolves it. A request needs no task and no timer of its own:

- Deadlines. One timer a connection, set to the earliest deadline known. When it fires, all entries are looked at, what
  has expired is failed, and the timer is set to the earliest of the rest, but never less than `_GRAIN` ahead. Under a
  steady load of equal time-outs that is one pass in each time-out, whatever the number of requests.
- Writing. Requests submitted in one turn of the event loop leave in one system call at its end. While the transport
  says that its buffer is full, they stay queued here, and their callers with them; what was cancelled or has timed out
  in the meantime is never written.
- A late answer finds no entry and is dropped. A cancelled call removes its own entry.
- What the peer sends that is not the protocol closes this connection, and fails what was under way on it; how much of
  an incomplete frame may be held in memory is the frame decoder's limit.
- A peer that answers nothing. A host that vanished is found by TCP itself (keep-alive and user time-out are set on the
  socket). For everything between, a connection on which a request has timed out and nothing at all has arrived for
  `dead_after` seconds while we waited is given up.
- Retiring. After the peer said GO_AWAY the connection takes no new requests and closes when the last answer is in.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import socket
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, cast

from rocketfleet.client.errors import ConnectionLost, ProtocolError, RequestTimeout, RocketMQError
from rocketfleet.client.transport.keys import Keys
from rocketfleet.wire import acl
from rocketfleet.wire.command import RESPONSE_FLAG, Command, decode, encode
from rocketfleet.wire.errors import FrameError, WireError
from rocketfleet.wire.frame import MAX_FRAME_LENGTH, FrameDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_GRAIN = 0.02  # seconds between two looks at the deadlines, at the least
_NEVER = float("inf")
_OPAQUE_LIMIT = 0x7FFFFFFF
_WRITE_TOGETHER = 64 * 1024  # requests are joined into one write up to this size
_HIGH_WATER = 256 * 1024
_numbers = itertools.count(1)


class _Pending(NamedTuple):
    """A request that has not been answered, or in the case of a one-way, not been written."""

    future: asyncio.Future[Command]
    deadline: float
    timeout: float
    code: int
    oneway: bool


class Connection(asyncio.Protocol):
    """See the module. `on_request` gets what the peer asks of us; `on_lost` is called once all calls have failed."""

    def __init__(
        self,
        peer: str,
        *,
        on_request: Callable[[Connection, Command], None],
        on_lost: Callable[[Connection, RocketMQError], None],
        keys: Keys | None = None,
        dead_after: float = 30.0,
        max_frame: int = MAX_FRAME_LENGTH,
    ) -> None:
        self.peer = peer
        self.number = next(_numbers)  # no two connections of this process have the same
        self.closing = False
        self.answered = False  # whether anything that makes sense ever arrived
        self._on_request = on_request
        self._on_lost = on_lost
        self._keys = Keys() if keys is None else keys
        self._dead_after = dead_after
        self._decoder = FrameDecoder(max_frame)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._error: RocketMQError | None = None
        self._pending: dict[int, _Pending] = {}
        self._opaque = 0
        self._queued: deque[tuple[int, bytes]] = deque()
        self._flush_due = False
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = _NEVER
        self._waiting_since = _NEVER  # when we began to wait without anything arriving

    # -- calls --------------------------------------------------------------------------------------------------------

    def submit(self, command: Command, timeout: float, *, oneway: bool = False) -> tuple[int, asyncio.Future[Command]]:
        """Send a request; the future resolves to the answer, that of a one-way to nothing once it is written.

        Whoever stops waiting for the future must call `forget` with the number.
        """
        if self.closing:
            raise ConnectionLost(self.peer, self._why(), command.code)
        opaque = self._next_number()
        data = self._encode(command, opaque)
        return opaque, self._enter(opaque, data, command.code, timeout, oneway)

    def submit_reply(self, command: Command, timeout: float) -> tuple[int, asyncio.Future[Command]]:
        """Answer the peer's request; as `submit` of a one-way, but the opaque is the peer's and nothing is signed."""
        if self.closing:
            raise ConnectionLost(self.peer, self._why())
        number = self._next_number()
        return number, self._enter(number, encode(command), command.code, timeout, oneway=True)

    async def reply(self, command: Command, timeout: float) -> None:
        """Answer the peer's request; returns when the transport has taken it."""
        number, future = self.submit_reply(command, timeout)
        try:
            await future
        except BaseException:
            self.forget(number)
            raise

    def forget(self, opaque: int) -> None:
        """Drop a request: its caller is gone, its answer will be ignored."""
        self._pending.pop(opaque, None)
        self._close_if_retired()

    @property
    def writable(self) -> bool:
        """Whether what is submitted now leaves at once."""
        return not self._paused and not self.closing

    def _next_number(self) -> int:
        number = self._opaque + 1
        while number in self._pending or number > _OPAQUE_LIMIT:  # only after two thousand million requests
            number = number + 1 if number < _OPAQUE_LIMIT else 1
        self._opaque = number
        return number

    def _enter(self, number: int, data: bytes, code: int, timeout: float, oneway: bool) -> asyncio.Future[Command]:
        now = self._loop.time()
        deadline = now + timeout
        future: asyncio.Future[Command] = self._loop.create_future()
        self._pending[number] = _Pending(future, deadline, timeout, code, oneway)
        if not oneway and self._waiting_since == _NEVER:
            self._waiting_since = now
        if deadline < self._timer_at:
            self._set_timer(max(deadline, now + _GRAIN))
        self._queued.append((number, data))
        if not self._flush_due and not self._paused:
            self._flush_due = True
            self._loop.call_soon(self._flush)
        return future

    def _encode(self, command: Command, opaque: int) -> bytes:
        credentials = self._keys.current
        if credentials is not None:
            fields = dict(command.fields)
            fields.update(acl.sign(credentials, fields, command.body))
            command = copy.copy(command)  # the caller's command stays free of signatures, it may be sent again
            command.fields = fields
        command.opaque = opaque
        return encode(command)

    # -- writing ------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._flush_due = False
        queued, pending, transport = self._queued, self._pending, self._transport
        while queued and not self._paused and transport is not None:
            together: list[bytes] = []
            size = 0
            while queued and size < _WRITE_TOGETHER:
                opaque, data = queued.popleft()
                entry = pending.get(opaque)
                if entry is None:
                    continue
                if entry.oneway:
                    del pending[opaque]
                    if not entry.future.done():
                        entry.future.set_result(_WRITTEN)
                together.append(data)
                size += len(data)
            if together:
                transport.write(together[0] if len(together) == 1 else b"".join(together))
        self._close_if_retired()

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._paused = True

    def resume_writing(self) -> None:
        """The transport's buffer has drained."""
        self._paused = False
        self._flush()

    # -- reading ------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes from the peer: answers go to their futures, requests to `on_request`."""
        self._waiting_since = _NEVER
        garbage: WireError | None = None
        try:
            payloads: Iterable[memoryview] = self._decoder.feed(data)
        except FrameError as error:
            garbage, payloads = error, error.frames  # what came before the garbage is as good as ever
        pending = self._pending
        try:
            for payload in payloads:
                command = decode(payload)
                self.answered = True
                if command.flag & RESPONSE_FLAG:
                    entry = pending.pop(command.opaque, None)
                    if entry is not None and not entry.future.done():
                        entry.future.set_result(command)
                else:
                    self._on_request(self, command)
        except WireError as error:
            garbage = error
        if garbage is not None:
            self.abort(ProtocolError(self.peer, f"the connection was closed, because {garbage}"))
            return
        if pending:
            self._waiting_since = self._loop.time()
        if self.closing:
            self._close_if_retired()

    # -- deadlines ----------------------------------------------------------------------------------------------------

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._timer_at = _NEVER
        now = self._loop.time()
        expired = [(opaque, entry) for opaque, entry in self._pending.items() if entry.deadline <= now]
        for opaque, entry in expired:
            del self._pending[opaque]
            if not entry.future.done():
                entry.future.set_exception(RequestTimeout(self.peer, entry.code, entry.timeout))
        if expired and now - self._waiting_since >= self._dead_after:
            silence = now - self._waiting_since
            self.abort(ConnectionLost(self.peer, f"nothing arrived for {silence:.0f} s, taken for dead"))
        elif self._pending:
            earliest = min(entry.deadline for entry in self._pending.values())
            self._set_timer(max(earliest, now + _GRAIN))
        self._close_if_retired()

    # -- life ---------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there (and the TLS handshake done)."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        detect_dead_hosts(transport.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone: fail whatever was under way."""
        self.closing = True
        if self._error is None:
            self._error = ConnectionLost(self.peer, self._how_it_ended(exc))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._queued.clear()
        pending, self._pending = self._pending, {}
        for entry in pending.values():
            if not entry.future.done():
                entry.future.set_exception(self._failure(entry.code))
        if not self._closed.done():
            self._closed.set_result(None)
        self._on_lost(self, self._error)

    def _how_it_ended(self, exc: Exception | None) -> str:
        if exc is not None:
            return str(exc) or repr(exc)
        held = self._decoder.buffered
        return f"closed by the peer in the middle of a frame, after {held} bytes" if held else "closed by the peer"

    def retire(self) -> None:
        """Take no more requests and close when those under way have been answered or have timed out."""
        self.closing = True
        if self._error is None:
            self._error = ConnectionLost(self.peer, "the peer asked us to go away")
        self._close_if_retired()

    def _close_if_retired(self) -> None:
        if self.closing and not self._pending and self._transport is not None:
            self._transport.close()

    def abort(self, error: RocketMQError) -> None:
        """Close at once because of this error; every request under way fails with it."""
        self.closing = True
        self._error = error
        if self._transport is not None:
            self._transport.abort()

    def close(self, error: RocketMQError) -> None:
        """Close after what is already written has left; every request under way fails with this error."""
        self._flush()
        self.closing = True
        self._error = error
        if self._transport is not None:
            self._transport.close()

    async def wait_closed(self) -> None:
        """Return when the transport is gone."""
        await asyncio.shield(self._closed)

    def _failure(self, code: int) -> RocketMQError:
        """A fresh error for one request: raising one object in many tasks would mix up their tracebacks."""
        error = self._error
        if isinstance(error, ProtocolError):
            return ProtocolError(self.peer, error.reason, code)
        return ConnectionLost(self.peer, self._why(), code)

    def _why(self) -> str:
        error = self._error
        return error.reason if isinstance(error, ConnectionLost | ProtocolError) else str(error or "closing")


_WRITTEN = cast("Command", None)


def detect_dead_hosts(sock: socket.socket | None) -> None:
    """Let TCP notice within about half a minute that the other host has vanished, idle or not."""
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Names differ between systems; what is missing keeps the system's default.
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000)):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
