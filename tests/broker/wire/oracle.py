"""The line to WireOracle.java: one JVM that answers any number of questions about Java's codec."""

import base64
import json
import os
import subprocess
from typing import Any, Self


class Oracle:
    """Asks one question a line, gets one answer a line."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1, env=dict(os.environ)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def ask(self, op: str, **fields: Any) -> Any:
        """The answer; bytes in the question travel as base64. An exception in Java fails the test."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(
            json.dumps({"op": op, **{name: plain(value) for name, value in fields.items()}}) + "\n"
        )
        line = self._process.stdout.readline()
        assert line, f"the oracle ended with {self._process.wait()}"
        reply = json.loads(line)
        assert "error" not in reply, f"{op}: {reply['error']}"
        return reply["answer"]

    def ask_bytes(self, op: str, **fields: Any) -> bytes:
        return base64.b64decode(self.ask(op, **fields))


def plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
