"""The sockets of the control port: an asyncio server, bounded in everything a caller could waste.

Why hand-written, and why in a thread of its own: /healthz must answer when the consumer's event loop is stuck, because
that is what it is asked about, so it cannot live on that loop. `http.server` would do in a thread, but starts another
thread for every connection and lets a caller dribble 6 MiB of headers at leisure; an event loop of our own costs one
thread, waits for a long drain without blocking anything, and its limits are the constants below.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Awaitable, Callable

from rocketfleet.base.loop_thread import LoopThread
from rocketfleet.control.http import (
    MAX_HEAD,
    BadRequest,
    HttpRequest,
    Response,
    encode_response,
    parse_head,
    text_response,
)

_log = logging.getLogger(__name__)
REQUEST_SECONDS = 5.0  # to send the whole request
ANSWER_SECONDS = 10.0  # to take the whole answer
MOST_CONNECTIONS = 64
BACKLOG = 64
LINGER_SECONDS, LINGER_READS = 0.5, 16
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)  # no such family in the kernel, or switched off by sysctl

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is meant by either: all addresses, of both families
Answer = Callable[[HttpRequest], Awaitable[Response]]


def everywhere(port: int) -> socket.socket:
    """A socket on every address: on IPv6 and IPv4 at once, or on IPv4 alone where this machine has no IPv6.

    asyncio would make a socket for each family, and with port 0 a port for each.
    """
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(("", port), backlog=BACKLOG)


class ControlServer:
    """Serves `answer` on one address, on the event loop in which it is started."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address and the port, which was chosen by the system if 0 was given."""
        if host in EVERYWHERE:
            self._server = await asyncio.start_server(
                self._accept, sock=everywhere(port), limit=MAX_HEAD, backlog=BACKLOG
            )
        else:
            self._server = await asyncio.start_server(self._accept, host, port, limit=MAX_HEAD, backlog=BACKLOG)
        address = self._server.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    async def close(self, grace: float) -> None:
        """Listen no more, and wait at most `grace` seconds for answers that are under way."""
        if self._server is not None:
            self._server.close()
        # Those who have not even asked are not waited for.
        for task in self._open - self._answering:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=grace)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        others = len(self._open)
        self._open.add(task)
        try:
            if others >= 2 * MOST_CONNECTIONS:
                return  # not even told so: being polite costs a connection
            if others >= MOST_CONNECTIONS:
                await _send(writer, text_response(503, f"{MOST_CONNECTIONS} connections are open: try again"), True)
                await _linger(reader, writer)
            else:
                await self._serve(task, reader, writer)
        except (OSError, TimeoutError):
            _log.debug("a caller of the control port went away")
        except asyncio.CancelledError:  # only `close` cancels; the streams' own callback would log it as an error
            _log.debug("a call to the control port was cut off")
        finally:
            self._open.discard(task)
            self._answering.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                request = parse_head(head[:-4], _peer(writer))
                await reader.readexactly(request.content_length)
        except TimeoutError:
            response = text_response(408, f"the request was not complete after {REQUEST_SECONDS:g} seconds")
        except asyncio.LimitOverrunError:
            response = text_response(431, f"the request's head is longer than {MAX_HEAD} bytes")
        except asyncio.IncompleteReadError:
            return  # gone, or a look whether the port is open
        except BadRequest as error:
            response = text_response(error.status, str(error))
        else:
            self._answering.add(task)
            answer = await self._unless_gone(reader, request)
            if answer is not None:
                await _send(writer, answer, request.method != "HEAD")
            return
        await _send(writer, response, True)
        await _linger(reader, writer)

    async def _unless_gone(self, reader: asyncio.StreamReader, request: HttpRequest) -> Response | None:
        """The answer; None if the caller has gone meanwhile. A drain may take for ever, and is asked for again and
        again: callers that no longer wait must not use up the connections that there may be.
        """
        answering = asyncio.ensure_future(self._answered(request))
        listening = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answering, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and listening.exception() is None and listening.result():
                await asyncio.wait({answering})  # more than it should have sent; but it is there
            return answering.result() if answering.done() else None
        finally:
            for one in (answering, listening):
                one.cancel()
            await asyncio.gather(answering, listening, return_exceptions=True)

    async def _answered(self, request: HttpRequest) -> Response:
        try:
            return await self._answer(request)
        except Exception:
            _log.exception("%s %s failed; this is a bug in the worker", request.method, request.path)
            return text_response(500, "the worker failed to answer: its log says why")


async def _send(writer: asyncio.StreamWriter, response: Response, with_body: bool) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        writer.write(encode_response(response, with_body=with_body))
        await writer.drain()


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read on for a moment after a refusal: closing with bytes unread would reset the connection before it is seen."""
    with contextlib.suppress(OSError, TimeoutError):
        writer.write_eof()
        async with asyncio.timeout(LINGER_SECONDS):
            for _ in range(LINGER_READS):
                if not await reader.read(MAX_HEAD):
                    return


def _peer(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else ""


class ControlThread:
    """A ControlServer on an event loop in a daemon thread of its own."""

    def __init__(self, answer: Answer) -> None:
        self._server = ControlServer(answer)
        self._thread: LoopThread | None = None

    def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen. Raises OSError if the address cannot be had."""
        thread = LoopThread("control")
        try:
            address = thread.call(self._server.start(host, port))
        except BaseException:
            thread.close()
            raise
        self._thread = thread
        return address

    def close(self, grace: float) -> None:
        """End, after answers that are under way; blocks for at most about `grace` seconds."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            thread.call(self._server.close(grace))
        finally:
            thread.close()
