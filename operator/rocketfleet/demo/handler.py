"""The demo's handler: takes a moment, and writes down when it begins a message and when it has finished it.

The record is a file opened for appending, one write a line, so that it is true whatever happens to the process.
"""

import json
import os
import time
from pathlib import Path

from rocketfleet.wire.message import ReceivedMessage

RECORD = "ROCKETFLEET_DEMO_RECORD"  # a directory, in which each process has a file
SECONDS_VARIABLE = "ROCKETFLEET_DEMO_HANDLER_SECONDS"


class HandlerRecord:
    """A line an event."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, event: str, **facts: object) -> None:
        os.write(self._file, (json.dumps({"event": event, "time": time.time(), **facts}) + "\n").encode())


_record: HandlerRecord | None = None


def handle(message: ReceivedMessage) -> None:
    """One message."""
    global _record  # noqa: PLW0603 - a handler has no other place to keep a file open
    if _record is None:
        _record = HandlerRecord(
            Path(os.environ[RECORD]) / f"{os.environ.get('POD_NAME', 'worker')}-{os.getpid()}.jsonl"
        )
    facts = {"queue": str(message.queue), "offset": message.queue_offset, "id": message.body.decode()}
    _record.note("begin", **facts)
    time.sleep(float(os.environ.get(SECONDS_VARIABLE, "0.02")))
    _record.note("finish", **facts)
