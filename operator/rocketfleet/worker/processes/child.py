"""One child process: the same command line again, on the other end of a lifeline.

Started in a session of its own, so that a Ctrl-C at a terminal reaches only the parent, which passes it on once:
a second signal would hurry the drain. For the same reason it is counted how often it was told to stop.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from rocketfleet.control.http import Response
from rocketfleet.control.http_call import CallFailed, call
from rocketfleet.control.port import LOOPBACK
from rocketfleet.worker.processes.lifeline import VARIABLE
from rocketfleet.worker.processes.merging import Answer, Part
from rocketfleet.worker.processes.restarts import Restarts

HELLO_SECONDS = 60.0  # to import the handler and listen
CHILD_ANSWER_SECONDS = 2.0


class Child:
    """One of several, over as many lives as it takes."""

    def __init__(self, number: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.number = number
        self.restarts = Restarts()
        self._clock = clock
        self._token = ""
        self._port: int | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._started_at = 0.0
        self._told_to_stop = 0

    # -- life ---------------------------------------------------------------------------------------------------------

    async def live(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start it and wait until it has ended; returns its exit code, negative for a signal."""
        ours, theirs = socket.socketpair()
        self._token, self._port, self._started_at = secrets.token_urlsafe(32), None, self._clock()
        self._told_to_stop = 0
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    *command,
                    env={**environment, VARIABLE: str(theirs.fileno())},
                    pass_fds=(theirs.fileno(),),
                    stdin=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            hello = {"process": self.number, "token": self._token}
            writer.write(json.dumps(hello).encode() + b"\n")
            listening = asyncio.ensure_future(self._hear_port(reader))
            try:
                return await self._process.wait()
            finally:
                listening.cancel()
        finally:
            self._process, self._port = None, None
            writer.close()

    async def _hear_port(self, reader: asyncio.StreamReader) -> None:
        line = await reader.readline()
        if line:
            self._port = int(json.loads(line)["port"])

    @property
    def lived(self) -> float:
        return self._clock() - self._started_at

    def tell_to_stop(self, times: int = 1) -> None:
        """Send it SIGTERM, if it has not had as many. The second one hurries it."""
        if self._told_to_stop < times:
            self._told_to_stop += 1
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and the loop has not noticed yet
                os.kill(self._process.pid, number)

    # -- questions ----------------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def can_be_asked(self) -> bool:
        return self._port is not None

    @property
    def trouble(self) -> str | None:
        """Why it cannot be asked, if that is bad enough for the whole to be started afresh."""
        if self._port is not None:
            return None
        if self._process is None:
            return f"has ended {self.restarts.failures} times in a row" if self.restarts.too_many else None
        waited = self.lived
        return f"has not opened its control port for {waited:.0f} s" if waited > HELLO_SECONDS else None

    async def ask(self, method: str, path: str, limit: float = CHILD_ANSWER_SECONDS) -> Response:
        """Call its control port. CallFailed if it has none, or does not answer."""
        if self._port is None:
            raise CallFailed("it is starting" if self.is_running else "it is not running")
        return await call(f"{LOOPBACK}:{self._port}", method, path, self._token, limit)

    async def part(
        self, method: str, path: str, read: Callable[[object], Answer], limit: float = CHILD_ANSWER_SECONDS
    ) -> Part[Answer]:
        """Its answer, or why there is none."""
        try:
            response = await self.ask(method, path, limit)
        except CallFailed as error:
            return Part(self.number, error=str(error))
        if response.status != 200:
            return Part(self.number, error=response.body.decode("utf-8", "replace").strip())
        return Part(self.number, read(json.loads(response.body)))
