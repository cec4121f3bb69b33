"""A peer for the client's tests: a real server on loopback that does what the test says with each request.

It stands below the client's sockets, so everything above it is the real thing; what a real broker does is checked
elsewhere, against a real broker.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Self

from rocketfleet.wire.command import Command, decode, encode, reply_to
from rocketfleet.wire.frame import FrameDecoder

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable


class Channel:
    """One connection, seen from the peer's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.received: list[Command] = []

    def send(self, command: Command) -> None:
        self.writer.write(encode(command))

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def answer(self, asked: Command, code: int = 0, remark: str | None = None, **rest: Any) -> None:
        self.send(reply_to(asked, code, remark, **rest))

    def hang_up(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        self.writer.transport.abort()


def obedient(channel: Channel, command: Command) -> None:
    """Answer everything with success, echoing the fields."""
    if not command.is_response and not command.is_oneway:
        channel.answer(command, fields=command.fields, body=command.body)


class Peer:
    """The server. `script` is called with each command that arrives; it may be replaced while the server runs."""

    def __init__(
        self,
        script: Callable[[Channel, Command], Any] = obedient,
        *,
        on_open: Callable[[Channel], Any] | None = None,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.script = script
        self.on_open = on_open
        self.tls = tls
        self.host = host
        self.port = 0
        self.channels: list[Channel] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def received(self) -> list[Command]:
        return [command for channel in self.channels for command in channel.received]

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def listen(self) -> None:
        """Listen, on the port of last time if there was one."""
        self._server = await asyncio.start_server(self._accept, self.host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self.channels:
            channel.reset()
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Known from its first moment on: a task that notes itself when it runs is missed by a stop before that.
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer)
        self.channels.append(channel)
        try:
            if self.on_open is not None:
                await self._run(self.on_open(channel))
            frames = FrameDecoder()
            while chunk := await reader.read(1 << 16):
                for payload in frames.feed(chunk):
                    command = decode(payload)
                    command.body = bytes(command.body)
                    channel.received.append(command)
                    await self._run(self.script(channel, command))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    @staticmethod
    async def _run(result: Any) -> None:
        if inspect.isawaitable(result):
            await result
