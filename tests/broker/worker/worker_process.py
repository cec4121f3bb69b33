"""A worker as a process of its own, in the hands of a test: started, asked, signalled, and what it left behind."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

TOKEN = "the-control-token"
PATIENCE = 90.0

COMMAND = [sys.executable, "-c", "from rocketfleet.cli.main import main; main()", "worker"]

# Appends a line per message to the file that HANDLED names, in one write: whole, whichever thread or process does it.
HANDLERS = """
import asyncio, os, sys, time
from pathlib import Path

_file = os.open(os.environ["HANDLED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(message):
    text = f"{message.body.decode()} {message.reconsume_times} {message.topic}"
    os.write(_file, (text + chr(10)).encode())

def handle(message):
    note(message)

def slowly(message):
    time.sleep(0.02)
    note(message)

def batch(messages: list):
    for message in messages:
        note(message)

def fail_once(message):
    note(message)
    if message.reconsume_times == 0 and message.body.startswith(b"bad"):
        if message.body.startswith(b"bad-exit"):
            sys.exit("enough")
        raise LookupError("the handler does not like " + message.body.decode())

def hold(message):
    note(message)
    while Path(os.environ["HANDLED"] + ".hold").exists():
        time.sleep(0.01)

async def block(message):
    note(message)
    while Path(os.environ["HANDLED"] + ".hold").exists():
        time.sleep(0.01)

async def later(message):
    await asyncio.sleep(0.001)
    note(message)
"""


class WorkerProcess:
    """One worker. `environment` and `arguments` come on top of what every test needs."""

    def __init__(
        self,
        directory: Path,
        name: str,
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        *,
        token: str | None = TOKEN,
    ) -> None:
        directory.mkdir(exist_ok=True)
        (directory / "handlers_under_test.py").write_text(HANDLERS)
        self.handled_file = directory / "handled"
        self.hold_file = directory / "handled.hold"
        self._port_file = directory / f"{name}.port"
        self._log_file = directory / f"{name}.log"
        variables = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ROCKETFLEET_")},
            "HANDLED": str(self.handled_file),
            "ROCKETFLEET_PATH": str(directory),
            "ROCKETFLEET_PORT_FILE": str(self._port_file),
            "ROCKETFLEET_LOG_FORMAT": "json",
            **({} if token is None else {"ROCKETFLEET_CONTROL_TOKEN": token}),
            **(environment or {}),
        }
        with self._log_file.open("wb") as log:
            self.process = subprocess.Popen([*COMMAND, *arguments], env=variables, stderr=log, stdin=subprocess.DEVNULL)

    # -- its control port ---------------------------------------------------------------------------------------------

    def ask(self, path: str, method: str = "GET", token: str | None = TOKEN, timeout: float = 60.0) -> tuple[int, str]:
        """Status and body."""
        address = wait_until(lambda: self._port_file.exists() and self._port_file.read_text().strip(), "a control port")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"http://{address}{path}", method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def json(self, path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
        status, body = self.ask(path, method, **more)
        assert status == 200, body
        content: dict[str, Any] = json.loads(body)
        return content

    def until_ready(self) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.log_text
            return self.ask("/readyz")[0] == 200

        wait_until(ready, "ready")

    def until_handled(self, bodies: list[str]) -> None:
        """Wait until every one of these was handled; fails at once if one is handled twice, or was never sent."""
        wanted = Counter(bodies)

        def all_handled() -> bool:
            found = Counter(self.handled)
            assert found <= wanted, f"too often: {found - wanted}\n{self.log_text}"
            return found == wanted

        try:
            wait_until(all_handled, "all are handled")
        except AssertionError as error:
            missing = wanted - Counter(self.handled)
            raise AssertionError(f"{error}; not handled: {missing}\n{self.log_text}") from None

    def until_owns(self, topic: str, count: int) -> None:
        wait_until(lambda: len(self.owned(topic)) == count, f"{count} queues of {topic} are owned")

    def owned(self, topic: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Its queues of a topic, by broker and number."""
        return {
            (queue["broker"], queue["queueId"]): queue
            for queue in self.json("/assignment")["queues"]
            if queue["topic"] == topic and queue["state"] == "Owned"
        }

    # -- what it did --------------------------------------------------------------------------------------------------

    @property
    def handled(self) -> list[str]:
        """The bodies it handled, in order; of all workers in the same directory."""
        return [line.split()[0] for line in self.handled_lines]

    @property
    def handled_lines(self) -> list[str]:
        return self.handled_file.read_text().splitlines() if self.handled_file.exists() else []

    @property
    def log_text(self) -> str:
        return self._log_file.read_text()

    @property
    def log(self) -> list[dict[str, Any]]:
        """Its log; fails if a line is not JSON."""
        return [json.loads(line) for line in self.log_text.splitlines()]

    # -- its end ------------------------------------------------------------------------------------------------------

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = PATIENCE) -> int:
        return self.process.wait(timeout)

    def kill(self) -> None:
        """However it is."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
