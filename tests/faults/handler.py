"""What members of a fault run are given: a handler that records what it handles, and behaves as a small file says.

The file is written anew, by `members.Behaviour`, whenever handlers are to become slow, to fail or to hang. The package
under test may be an older one, which knows nothing of recording: what it does not have is taken from this checkout.
"""

import atexit
import hashlib
import json
import logging
import os
import re
import time
from pathlib import Path
from typing import Any

from tests.faults.handler_variables import BEHAVIOUR, RECORDS

import rocketfleet
from rocketfleet.wire.message import ReceivedMessage

_CLIENT_ID = "ROCKETFLEET_CLIENT_ID"
_HERE = Path(__file__).resolve().parents[2] / "operator" / "rocketfleet"
_LOOK_SECONDS = 0.02

if str(_HERE) not in rocketfleet.__path__:
    rocketfleet.__path__.append(str(_HERE))

from rocketfleet.testing.history import EventKind, Recorder  # noqa: E402 - an older package has it only from now on
from rocketfleet.testing.recording import recorded  # noqa: E402


class HandlerFaultError(Exception):
    """What a failing handler raises."""


def name_of_process() -> str:
    """The client id of this process: given, or a pod's. Of several, its log knows the number."""
    given = os.environ.get(_CLIENT_ID) or f"{os.environ.get('POD_NAME')}@{os.environ.get('POD_UID')}"
    formats = [handler.formatter for handler in logging.getLogger().handlers]
    number = next((found[1] for one in formats if (found := re.search(r" \[(\d+)\] ", getattr(one, "_fmt", "")))), None)
    return given + ("" if number is None else f"#{number}")


class _Told:
    """The behaviour that the file asks for now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = -1
        self._content: dict[str, Any] = {}

    def now(self) -> dict[str, Any]:
        stamp = self._path.stat().st_mtime_ns  # the file is replaced as a whole
        if stamp != self._seen:
            self._content, self._seen = json.loads(self._path.read_text()), stamp
        return self._content


_told = _Told(Path(os.environ[BEHAVIOUR]))
_name = name_of_process()
_recorder = Recorder(Path(os.environ[RECORDS]) / f"{_name}-{os.getpid()}.jsonl", _name)
_recorder.note(EventKind.JOINED, client_id=_name, pid=os.getpid())
if _CLIENT_ID not in os.environ:
    # Nobody of the harness tells a pod to go, so it says itself that it has gone.
    atexit.register(_recorder.note, EventKind.LEFT)


def _handle(message: ReceivedMessage) -> None:
    told = _told.now()
    time.sleep(told.get("seconds", 0.0))
    while _told.now().get("hangs"):
        time.sleep(_LOOK_SECONDS)
    # Which messages fail does not depend on who handles them; the next try succeeds.
    luck = hashlib.blake2b(message.body, digest_size=2).digest()
    if message.reconsume_times == 0 and int.from_bytes(luck, "big") < told.get("fails", 0.0) * 65536:
        raise HandlerFaultError("told to fail")


handle = recorded(_handle, _recorder, identify=lambda message: message.body.decode())
