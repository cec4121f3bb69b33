"""Requests that the peer sends to us: notifications, transaction checks, questions about our state.

Several parts of a program may share a client, so a request code can have several handlers: all are called in the order
in which they were registered, and the first one that has an answer gives it. A handler is a function or a coroutine
function. No handler at all for a code is answered as Java does, and so is a handler that fails. A one-way request is
never answered.

Each request is served by a task of its own, so a slow handler holds up nobody; how many there may be is bounded,
because each holds memory until its answer has left. Beyond the bound the peer is told that we are busy, or nothing at
all if it does not read what we send.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from rocketfleet.client.errors import RocketMQError
from rocketfleet.wire.codes import ResponseCode, request_name
from rocketfleet.wire.command import Command, reply_to

if TYPE_CHECKING:
    from rocketfleet.client.transport.connection import Connection

Handler = Callable[[str, Command], Command | Awaitable[Command | None] | None]
"""Gets the peer's address and its request; returns the answer, or None for no answer."""

_log = logging.getLogger(__name__)
_REPLY_TIMEOUT = 10.0


class Incoming:
    """The table of handlers, and the requests under way."""

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._handlers: dict[int, tuple[Handler, ...]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._complained: set[tuple[int, str]] = set()

    def register(self, code: int, handler: Handler) -> Callable[[], None]:
        """Add a handler; the function returned takes it away again."""
        self._handlers[code] = (*self._handlers.get(code, ()), handler)

        def remove() -> None:
            left = tuple(one for one in self._handlers.get(code, ()) if one is not handler)
            if left:
                self._handlers[code] = left
            else:
                self._handlers.pop(code, None)

        return remove

    def dispatch(self, connection: Connection, command: Command) -> None:
        """Called by the connection for each request that arrives on it."""
        handlers = self._handlers.get(command.code, ())
        if not handlers and command.is_oneway:
            self._complain(command, "no handler", None)
        elif len(self._tasks) >= self._limit:
            self._complain(command, "too many requests at once", None)
            if not command.is_oneway and connection.writable:
                remark = "[OVERLOAD]system busy, start flow control for a while"
                answer = reply_to(command, ResponseCode.SYSTEM_BUSY, remark)
                _, written = connection.submit_reply(answer, _REPLY_TIMEOUT)
                # Nobody waits for it; without this a connection that is lost now would be reported as a mistake.
                written.add_done_callback(lambda future: future.cancelled() or future.exception())
        else:
            self._start(self._serve(connection, command, handlers))

    async def _serve(self, connection: Connection, command: Command, handlers: tuple[Handler, ...]) -> None:
        if handlers:
            answer = await self._ask(connection.peer, command, handlers)
        else:
            self._complain(command, "no handler", None)
            remark = f" request type {command.code} not supported"
            answer = reply_to(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        if answer is None or command.is_oneway:
            return
        try:
            await connection.reply(answer, _REPLY_TIMEOUT)
        except RocketMQError as error:
            _log.debug("the answer to %s of %s did not leave: %s", request_name(command.code), connection.peer, error)

    async def _ask(self, peer: str, command: Command, handlers: tuple[Handler, ...]) -> Command | None:
        answer: Command | None = None
        for handler in handlers:
            try:
                given = handler(peer, command)
                if inspect.isawaitable(given):
                    given = await given
            except Exception as error:
                self._complain(command, "a handler failed", error)
                given = reply_to(command, ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")
            if answer is None:
                answer = given
        return answer

    def _start(self, serving: Awaitable[None]) -> None:
        task = asyncio.ensure_future(serving)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _complain(self, command: Command, what: str, error: Exception | None) -> None:
        """Log once for each kind of request and trouble: a peer may repeat itself thousands of times."""
        key = (command.code, what)
        if key in self._complained or len(self._complained) >= self._limit:
            return
        self._complained.add(key)
        _log.warning("request %s from the broker: %s (logged once)", request_name(command.code), what, exc_info=error)

    async def close(self) -> None:
        """Cancel what is under way and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
