"""A parent and children that are no workers, only processes that say hello."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import until

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.control import exit_codes
from rocketfleet.control.http_call import call
from rocketfleet.control.port import ControlPort
from rocketfleet.control.token import Token
from rocketfleet.worker.processes import lifeline
from rocketfleet.worker.processes.parent import Parent

# Says hello, notes that it lives, and answers every call with its number until it is told to stop or to drain.
CHILD = """
import json, os, signal, sys
from pathlib import Path
from http.server import BaseHTTPRequestHandler, HTTPServer
from rocketfleet.worker.processes.lifeline import adopt
line = adopt(os.environ)
Path(sys.argv[1], f"{line.process}-{os.getpid()}").touch()
if sys.argv[2] == "settings":
    sys.exit(2)
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        me = f"me#{line.process}"
        body = json.dumps({"group": "g", "clientId": me, "clientIds": [me], "phase": "Running", "ready": True,
            "settled": True, "strategy": "AVG", "handover": "Exclusive", "members": [me], "queues": [],
            "confirmed": True, "exitCode": 0, "seconds": 0.0}).encode()
        allowed = self.headers["Authorization"] == f"Bearer {line.token}"
        self.send_response(200 if allowed else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.path == "/drain":
            raise KeyboardInterrupt
    do_POST = do_GET
    def log_message(self, *args): ...
server = HTTPServer(("127.0.0.1", 0), Answer)
line.hold(5.0, lambda: os.kill(os.getpid(), signal.SIGTERM))
line.report_port(server.server_port)
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, stop)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(int(sys.argv[2]))
"""


class Running:
    """A parent under test, with the notes of its children."""

    def __init__(self, parent: Parent, notes: Path, port: int, ending: "asyncio.Task[int]") -> None:
        self.parent = parent
        self.notes = notes
        self.port = port
        self.ending = ending

    def lives(self, number: int) -> list[int]:
        return [int(path.name.partition("-")[2]) for path in self.notes.glob(f"{number}-*")]

    async def get(self, path: str, method: str = "GET") -> dict[str, Any]:
        response = await call(f"127.0.0.1:{self.port}", method, path, "t", 30.0)
        content: dict[str, Any] = json.loads(response.body)
        return content

    async def until_ready(self) -> None:
        async def ready() -> bool:
            return (await call(f"127.0.0.1:{self.port}", "GET", "/readyz", "", 5.0)).status == 200

        await until(ready)


@contextlib.asynccontextmanager
async def running(tmp_path: Path, how: str = "0", count: int = 2) -> AsyncIterator[Running]:
    notes, port_file = tmp_path / "notes", tmp_path / "port"
    notes.mkdir()
    parent = Parent(count, [sys.executable, "-c", CHILD, str(notes), how], os.environ, drain_timeout=1.0)
    ending = asyncio.create_task(parent.run(ControlPort(file=port_file), Token("t")))

    async def listening() -> bool:
        return port_file.exists()

    try:
        await until(listening)
        yield Running(parent, notes, int(port_file.read_text().rpartition(":")[2]), ending)
    finally:
        parent._signalled()
        async with asyncio.timeout(30):
            await asyncio.wait({ending})
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def test_it_asks_all_and_answers_for_all(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.until_ready()
        assert (await call(f"127.0.0.1:{scene.port}", "GET", "/healthz", "", 5.0)).status == 200
        assignment = await scene.get("/assignment")
        assert assignment["clientIds"] == ["me#0", "me#1"]
        assert (await scene.get("/rebalance", "POST"))["clientIds"] == ["me#0", "me#1"]
        assert (await call(f"127.0.0.1:{scene.port}", "POST", "/drain", "wrong", 5.0)).status == 403
        first, second = await asyncio.gather(scene.get("/drain", "POST"), scene.get("/drain", "POST"))
        assert first == second
        assert first["confirmed"] is True
        async with asyncio.timeout(30):
            assert await scene.ending == exit_codes.DRAINED


async def test_a_child_that_ends_by_itself_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path) as scene:
        await scene.until_ready()
        os.kill(scene.lives(0)[0], signal.SIGKILL)

        async def started_again() -> bool:
            # One that is about to start is no reason to restart the others.
            assert (await call(f"127.0.0.1:{scene.port}", "GET", "/healthz", "", 5.0)).status == 200
            return len(scene.lives(0)) == 2

        await until(started_again)
        await scene.until_ready()
        assert len(scene.lives(1)) == 1
    assert "process 0 ended by itself (SIGKILL)" in caplog.text
    assert scene.ending.result() == exit_codes.DRAINED


async def test_wrong_settings_end_it_all(tmp_path: Path) -> None:
    async with running(tmp_path, "settings") as scene, asyncio.timeout(60):
        assert await scene.ending == exit_codes.SETTINGS
    assert max(len(scene.lives(number)) for number in (0, 1)) <= 1


async def test_a_childs_exit_code_is_the_parents(tmp_path: Path) -> None:
    async with running(tmp_path, "4") as scene:
        await scene.until_ready()
    assert scene.ending.result() == exit_codes.NOT_CONFIRMED


async def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        other = Parent(1, ["true"], {}, drain_timeout=1.0)
        with pytest.raises(SettingsError, match="cannot listen"):
            await other.run(ControlPort(port=scene.port), Token())


def test_a_lifeline_is_not_passed_on_to_grandchildren() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(b'{"process": 3, "token": "t"}\n')
    environment = {lifeline.VARIABLE: str(theirs.detach())}
    line = lifeline.adopt(environment)
    assert line is not None
    assert (line.process, line.token) == (3, "t")
    assert environment == {}
    assert lifeline.adopt(environment) is None
    line.report_port(77)
    assert json.loads(ours.recv(100)) == {"port": 77}
    line._socket.close()
    ours.close()
