"""Calls to peers by address: one multiplexed connection each, made on demand and shared by everybody.

The first call to an address starts a connection attempt; calls that come while it runs wait for the same attempt. An
attempt that fails puts the address into back-off: until the next attempt is due, calls fail at once with an error that
says why. So a dead broker costs its callers nothing but the answer, and other brokers nothing at all. A connection that
ended without one sensible answer counts as a failed attempt too: a port that accepts and hangs up would otherwise be
tried in a tight loop.

A peer that is shutting down answers GO_AWAY instead of doing what was asked. Such a call is made once more, over a new
connection (the next process behind the same address, one hopes), while the old one finishes what it has.

Keys and certificates may be renewed in their files while we run (`keys.py`, `tls.py`). Each attempt to connect looks at
them; and a call that is refused is made once more if the keys are others by then.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random as random_numbers
import socket
import ssl
import time
from asyncio import staggered
from functools import partial
from typing import TYPE_CHECKING, Any

from rocketfleet.base.backoff import Failures, after_failure
from rocketfleet.client.errors import (
    BackingOff,
    ClientClosed,
    ConnectError,
    ConnectionLost,
    RequestTimeout,
    RocketMQError,
)
from rocketfleet.client.transport import tls
from rocketfleet.client.transport.address import Address, parse
from rocketfleet.client.transport.connection import Connection
from rocketfleet.client.transport.incoming import Handler, Incoming
from rocketfleet.client.transport.keys import Keys
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
_NO_PERMISSION = int(ResponseCode.NO_PERMISSION)


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
        self._tls = None if config.tls is None else tls.FollowedContext(config.tls)
        self.keys = Keys(config.credentials, config.credentials_path)
        self._connections: dict[str, Connection] = {}
        self._retired: set[Connection] = set()
        self._attempts: dict[str, asyncio.Task[Connection | Failures]] = {}
        self._failures: dict[str, Failures] = {}
        self._incoming = Incoming()
        self._connected: list[Callable[[str], None]] = []
        self._disconnected: list[Callable[[str, RocketMQError], None]] = []
        self._unreachable: list[Callable[[str], None]] = []
        self._closed = False

    # -- calls --------------------------------------------------------------------------------------------------------

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        """Send a request and return the answer, whatever its code. The time-out includes connecting."""
        if timeout is None:
            timeout = self._config.timeout
        connection = self._connections.get(address)
        if connection is None or connection.closing:
            connection, timeout = await self._connect_within(address, command, timeout)
        signed_by = self.keys.current
        number, answer = connection.submit(command, timeout)
        try:
            response = await answer
        except BaseException:
            connection.forget(number)
            raise
        if response.code == _GO_AWAY:
            return await self._call_again(connection, command, timeout)
        if response.code == _NO_PERMISSION and signed_by is not None:
            self.keys.refresh()
            if self.keys.current is not signed_by:
                return (await self._exchange(address, command, timeout))[1]
        return response

    async def _call_again(self, connection: Connection, command: Command, timeout: float) -> Command:
        self._retire(connection)
        following, response = await self._exchange(connection.peer, command, timeout)
        if response.code == _GO_AWAY:
            self._retire(following)
            raise ConnectionLost(
                connection.peer, "the peer is shutting down and asked us twice to go away", command.code
            )
        return response

    async def _exchange(self, address: str, command: Command, timeout: float) -> tuple[Connection, Command]:
        """A second try, with whatever connection there is now. The first one, in `call`, does without the extra step:
        every pull and send goes through it.
        """
        connection = self._connections.get(address)
        if connection is None or connection.closing:
            connection, timeout = await self._connect_within(address, command, timeout)
        number, answer = connection.submit(command, timeout)
        try:
            return connection, await answer
        except BaseException:
            connection.forget(number)
            raise

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

    # -- what the peer does -------------------------------------------------------------------------------------------

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

    def on_unreachable(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with the address whenever an attempt to connect has failed; the function returned ends it."""
        self._unreachable.append(callback)
        return lambda: self._unreachable.remove(callback)

    @property
    def connected(self) -> tuple[str, ...]:
        """The addresses to which there is a connection now."""
        return tuple(self._connections)

    def is_connected(self, address: str) -> bool:
        """Whether there is a connection to the address that takes requests."""
        connection = self._connections.get(address)
        return connection is not None and not connection.closing

    def connection_number(self, address: str) -> int:
        """The number of the present connection, 0 if there is none. Another number means that the peer was away, and
        may have forgotten what it said.
        """
        connection = self._connections.get(address)
        return 0 if connection is None or connection.closing else connection.number

    # -- connecting ---------------------------------------------------------------------------------------------------

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
        """Connect, or note the failure, and tell. Runs as a task of its own."""
        result = await self._open(address)
        if isinstance(result, Failures):
            for told in tuple(self._unreachable):
                self._tell(told, address)
        else:
            self._connections[address] = result
            for callback in tuple(self._connected):
                self._tell(callback, address)
        return result

    async def _open(self, address: str) -> Connection | Failures:
        loop = asyncio.get_running_loop()
        limit = self._config.connect_timeout
        try:
            where = parse(address)
            self.keys.refresh()

            def made() -> Connection:
                return Connection(
                    address,
                    on_request=self._incoming.dispatch,
                    on_lost=self._lost,
                    keys=self.keys,
                    dead_after=self._config.dead_after,
                )

            secured = self._config.tls
            name = None if secured is None else (secured.server_name or where.host)
            context = None if self._tls is None else self._tls.current()
            async with asyncio.timeout(limit):
                if self._config.refused_address is None:
                    _, connection = await loop.create_connection(
                        made,
                        *where,
                        ssl=context,
                        server_hostname=name,
                        happy_eyeballs_delay=_HAPPY_EYEBALLS,
                    )
                else:
                    chosen = await self._permitted(where, self._config.refused_address)
                    _, connection = await loop.create_connection(made, sock=chosen, ssl=context, server_hostname=name)
        except TimeoutError:
            return self._failed(address, f"no connection within {limit:g} s")
        except (OSError, ValueError) as error:
            return self._failed(address, _why(error))
        finally:
            self._attempts.pop(address, None)
        if connection.closing:  # lost again before this task came to run
            return self._failures.get(address) or self._failed(address, "closed by the peer")
        return connection

    async def _permitted(self, where: Address, refused: Callable[[str], str | None]) -> socket.socket:
        """A connection to one of the host's addresses that is not refused. It is resolved here, once: what was judged
        is what is connected to.
        """
        found = await asyncio.get_running_loop().getaddrinfo(*where, type=socket.SOCK_STREAM)
        refusals = {entry[4]: refused(str(entry[4][0])) for entry in found}
        permitted = [entry for entry in found if refusals[entry[4]] is None]
        if not permitted:
            raise ValueError("; ".join(refusal for refusal in refusals.values() if refusal is not None))
        attempts = [partial(_connected, entry[0], entry[4]) for entry in permitted]
        connected: socket.socket | None
        connected, _, errors = await staggered.staggered_race(attempts, _HAPPY_EYEBALLS)
        if connected is None:
            raise next(error for error in errors if error is not None)
        return connected

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
            self._retired.add(connection)
            connection.retire()
            # What the peer kept for this connection (its members, its locks) ends with it: told like any other loss.
            self._drop(connection, ConnectionLost(connection.peer, "the peer asked us to go away"))

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


async def _connected(family: int, address: Any) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, address)
    except BaseException:
        opened.close()
        raise
    return opened


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
