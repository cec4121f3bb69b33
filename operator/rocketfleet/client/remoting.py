"""Calls to peers by address: one multiplexed connection each, made on demand and shared by everybody.

The first call to an address starts a connection attempt; calls that come while it runs wait for the same attempt. An
attempt that fails puts the address into back-off: until the next attempt is due, calls fail at once with an error that
says why. So a dead broker costs its callers nothing but the answer, and other brokers nothing at all. A connection that
ended without one sensible answer counts as a failed attempt too: a port that accepts and hangs up would otherwise be
tried in a tight loop.

A peer that is shutting down answers GO_AWAY instead of doing what was asked. Such a call is made once more, over a new
connection (the next process behind the same address, one hopes), while the old one finishes what it has.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random as random_numbers
import socket
import ssl
import time
from typing import TYPE_CHECKING

from rocketfleet.client import tls
from rocketfleet.client.address import parse
from rocketfleet.client.backoff import Failures, after_failure
from rocketfleet.client.connection import Connection
from rocketfleet.client.errors import (
    BackingOff,
    ClientClosed,
    ConnectError,
    ConnectionLost,
    RequestTimeout,
    RocketMQError,
)
from rocketfleet.client.incoming import Handler, Incoming
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.command import ONEWAY_FLAG, Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.client.config import ClientConfig

_log = logging.getLogger(__name__)
_CLOSE_PATIENCE = 1.0
_HAPPY_EYEBALLS = 0.25
_REMEMBERED_FAILURES = 1000
_GO_AWAY = int(ResponseCode.GO_AWAY)


class Remoting:
    """See the module. Belongs to the event loop in which it is first used."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_numbers.random,
    ) -> None:
        self._config = config
        self._clock = clock
        self._random = random
        self._tls = None if config.tls is None else tls.context(config.tls)
        self._connections: dict[str, Connection] = {}
        self._retired: set[Connection] = set()
        self._attempts: dict[str, asyncio.Task[Connection | Failures]] = {}
        self._failures: dict[str, Failures] = {}
        self._incoming = Incoming()
        self._connected: list[Callable[[str], None]] = []
        self._disconnected: list[Callable[[str, RocketMQError], None]] = []
        self._closed = False

    # -- calls

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        """Send a request and return the answer, whatever its code. The time-out includes connecting."""
        if timeout is None:
            timeout = self._config.timeout
        connection = self._connections.get(address)
        if connection is None or connection.closing:
            connection, timeout = await self._connect_within(address, command, timeout)
        number, answer = connection.submit(command, timeout)
        try:
            response = await answer
        except BaseException:
            connection.forget(number)
            raise
        if response.code == _GO_AWAY:
            return await self._call_again(connection, command, timeout)
        return response

    async def _call_again(self, connection: Connection, command: Command, timeout: float) -> Command:
        address = connection.peer
        self._retire(connection)
        following = self._connections.get(address)
        if following is None or following.closing:
            following, timeout = await self._connect_within(address, command, timeout)
        number, answer = following.submit(command, timeout)
        try:
            response = await answer
        except BaseException:
            following.forget(number)
            raise
        if response.code == _GO_AWAY:
            self._retire(following)
            raise ConnectionLost(address, "the peer is shutting down and asked us twice to go away", command.code)
        return response

    async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None:
        """Send a request that has no answer. Returns when the transport has taken it, which proves nothing."""
        if timeout is None:
            timeout = self._config.timeout
        command.flag |= ONEWAY_FLAG
        connection = self._connections.get(address)
        if connection is None or connection.closing:
            connection, timeout = await self._connect_within(address, command, timeout)
        number, written = connection.submit(command, timeout, oneway=True)
        try:
            await written
        except BaseException:
            connection.forget(number)
            raise

    # -- what the peer does

    def on_request(self, code: int, handler: Handler) -> Callable[[], None]:
        """Handle requests of this code that peers send to us; the function returned takes the handler away again."""
        return self._incoming.register(code, handler)

    def on_connect(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with the address whenever a connection is made; the function returned ends it."""
        self._connected.append(callback)
        return lambda: self._connected.remove(callback)

    def on_disconnect(self, callback: Callable[[str, RocketMQError], None]) -> Callable[[], None]:
        """Call back with the address and the reason whenever a connection is lost; the function returned ends it."""
        self._disconnected.append(callback)
        return lambda: self._disconnected.remove(callback)

    @property
    def connected(self) -> tuple[str, ...]:
        """The addresses to which there is a connection now."""
        return tuple(self._connections)

    # -- connecting

    async def connect(self, address: str, timeout: float | None = None) -> None:
        """Make sure that there is a connection, without asking anything of the peer."""
        await self._connection(address, self._config.connect_timeout if timeout is None else timeout)

    async def _connect_within(self, address: str, command: Command, timeout: float) -> tuple[Connection, float]:
        """A connection, and what is left of the time-out."""
        now = asyncio.get_running_loop().time
        started = now()
        connection = await self._connection(address, timeout)
        left = timeout - (now() - started)
        if left <= 0:
            raise RequestTimeout(address, command.code, timeout)
        return connection, left

    async def _connection(self, address: str, timeout: float) -> Connection:
        loop = asyncio.get_running_loop()
        if self._closed:
            raise ClientClosed
        old = self._connections.get(address)
        if old is not None:
            if not old.closing:
                return old
            self._drop(old, ConnectionLost(address, "it is closing"))
        attempt = self._attempts.get(address)
        if attempt is None:
            before = self._failures.get(address)
            now = self._clock()
            if before is not None and now < before.until:
                raise BackingOff(address, before.reason, before.until - now, before.count)
            attempt = loop.create_task(self._attempt(address), name=f"connect to {address}")
            self._attempts[address] = attempt
        try:
            async with asyncio.timeout(timeout):
                # Shielded: whoever started the attempt may give up without taking it away from the others.
                result = await asyncio.shield(attempt)
        except TimeoutError:
            raise ConnectError(address, f"no connection within {timeout:.3g} s") from None
        except asyncio.CancelledError:
            if attempt.cancelled():
                raise ClientClosed from None
            raise
        if isinstance(result, Failures):
            raise ConnectError(address, result.reason, max(0.0, result.until - self._clock()))
        return result

    async def _attempt(self, address: str) -> Connection | Failures:
        """Connect, or note the failure. Runs as a task of its own."""
        loop = asyncio.get_running_loop()
        limit = self._config.connect_timeout
        try:
            where = parse(address)
            secured = self._config.tls
            async with asyncio.timeout(limit):
                _, connection = await loop.create_connection(
                    lambda: Connection(
                        address,
                        on_request=self._incoming.dispatch,
                        on_lost=self._lost,
                        credentials=self._config.credentials,
                        dead_after=self._config.dead_after,
                    ),
                    where.host,
                    where.port,
                    ssl=self._tls,
                    server_hostname=None if secured is None else (secured.server_name or where.host),
                    happy_eyeballs_delay=_HAPPY_EYEBALLS,
                )
        except TimeoutError:
            return self._failed(address, f"no connection within {limit:g} s")
        except (OSError, ValueError) as error:
            return self._failed(address, _why(error))
        finally:
            self._attempts.pop(address, None)
        if connection.closing:  # lost again before this task came to run
            return self._failures.get(address) or self._failed(address, "closed by the peer")
        self._connections[address] = connection
        for callback in tuple(self._connected):
            self._tell(callback, address)
        return connection

    def _failed(self, address: str, reason: str) -> Failures:
        now = self._clock()
        noted = after_failure(self._config.backoff, self._failures.get(address), reason, now, self._random)
        if len(self._failures) >= _REMEMBERED_FAILURES:  # brokers come and go, addresses must not pile up
            self._failures = {key: one for key, one in self._failures.items() if one.until > now}
        self._failures[address] = noted
        return noted

    def _lost(self, connection: Connection, error: RocketMQError) -> None:
        self._retired.discard(connection)
        address = connection.peer
        if connection.answered:
            self._failures.pop(address, None)
        elif not self._closed:
            self._failed(address, f"it accepted a connection and ended it without an answer: {error}")
        self._drop(connection, error)

    def _drop(self, connection: Connection, error: RocketMQError) -> None:
        """Take a connection out of the table, and tell, once."""
        address = connection.peer
        if self._connections.get(address) is connection:
            del self._connections[address]
            for callback in () if self._closed else tuple(self._disconnected):
                self._tell(callback, address, error)

    def _retire(self, connection: Connection) -> None:
        if self._connections.get(connection.peer) is connection:
            del self._connections[connection.peer]
            self._retired.add(connection)
            connection.retire()

    @staticmethod
    def _tell(callback: Callable[..., None], *facts: object) -> None:
        try:
            callback(*facts)
        except Exception:
            _log.exception("a callback about a connection failed")

    async def close(self) -> None:
        """Close all connections. Calls under way fail with ConnectionLost, new ones with ClientClosed."""
        self._closed = True
        attempts = list(self._attempts.values())
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
        await self._incoming.close()
        open_ones = [*self._connections.values(), *self._retired]
        for connection in open_ones:
            connection.close(ConnectionLost(connection.peer, "the client was closed"))
        if open_ones:
            ended = [asyncio.ensure_future(connection.wait_closed()) for connection in open_ones]
            _, late = await asyncio.wait(ended, timeout=_CLOSE_PATIENCE)
            for connection in open_ones if late else ():
                connection.abort(ConnectionLost(connection.peer, "the client was closed"))
            await asyncio.gather(*ended)
        self._connections.clear()


def _why(error: OSError | ValueError) -> str:
    """Why an attempt failed, in words: asyncio's own say little more than that it did."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error}); does the peer speak TLS?"
    if isinstance(error, socket.gaierror):
        return f"its name cannot be resolved: {error.strerror}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
