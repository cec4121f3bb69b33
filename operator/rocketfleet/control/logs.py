"""Log lines, for programs or for people, on standard error.

In JSON the queue that a message speaks of is a field of its own, so a search for one queue's history needs no regular
expression: a queue among the arguments is known by its type. Whatever is passed as `extra` is a field too; offsets are.
"""

import json
import logging
import sys
import time
from typing import Any, Literal, TextIO

from rocketfleet.wire.queue import MessageQueue

LogFormat = Literal["json", "text"]

# What a LogRecord has by itself; anything else was passed as `extra`.
_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def configure(log_format: LogFormat, level: str, process: int | None = None, stream: TextIO | None = None) -> None:
    """Send everything that is logged to standard error. `process` is the number among several, if there are several."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter(process) if log_format == "json" else TextFormatter(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def moment(record: logging.LogRecord) -> str:
    """When, in UTC and with milliseconds."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


class JsonFormatter(logging.Formatter):
    """One object a line."""

    def __init__(self, process: int | None = None) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._process is not None:
            line["process"] = self._process
        line |= queue_of(record)
        line |= {name: value for name, value in record.__dict__.items() if name not in _OWN and name not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """For people: time, level, logger, message."""

    def __init__(self, process: int | None = None) -> None:
        which = "" if process is None else f"[{process}] "
        super().__init__(f"%(asctime)s %(levelname)-7s {which}%(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        return moment(record)


def queue_of(record: logging.LogRecord) -> dict[str, str]:
    """The queue that the message speaks of, if it does."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    return next(({"queue": str(one)} for one in arguments if isinstance(one, MessageQueue)), {})
