"""The other side of each check: Java's administration client in a process that stays, and Java members of groups."""

from __future__ import annotations

import contextlib
import json
import subprocess
from typing import TYPE_CHECKING, Any

from rocketfleet.devbroker.launch import clean_environment
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.broker.java_main import JavaPrograms


class OracleError(Exception):
    """Java's client failed; the code is the broker's, or -1."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Oracle:
    """`tests/broker/java/ClientOracle.java`: one command, one answer."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._line() == "ready"

    def __call__(self, command: str, *arguments: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, *map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._line())
        if "error" in answer:
            raise OracleError(answer["error"], answer["message"])
        return answer["ok"]

    def rows(self, command: str, *arguments: object) -> dict[MessageQueue, tuple[int, ...]]:
        """A command whose answer is a table by queue."""
        return {MessageQueue(*row[:3]): tuple(row[3:]) for row in self(command, *arguments)}

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the oracle ended"
        return line.strip()


@contextlib.contextmanager
def java_process(programs: JavaPrograms, source: str, *arguments: str, **properties: str) -> Iterator[Any]:
    """A Java program that lives as long as the block."""
    process = subprocess.Popen(
        programs.command(source, arguments, properties),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=clean_environment(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def oracle_of(programs: JavaPrograms, name_server: str, *credentials: str, **properties: str) -> Iterator[Oracle]:
    """An oracle for a cluster."""
    with java_process(programs, "ClientOracle.java", name_server, *credentials, **properties) as process:
        yield Oracle(process)


@contextlib.contextmanager
def member_of(programs: JavaPrograms, name_server: str, group: str, topic: str, mode: str) -> Iterator[str]:
    """A Java push consumer; gives its client id."""
    with java_process(programs, "ClientMember.java", name_server, group, topic, mode) as process:
        client_id = process.stdout.readline().strip()
        assert client_id, "the member did not start"
        yield client_id
