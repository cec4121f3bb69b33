"""What a worker leaves behind when it ends: a file that says where each of its queues stood.

In a pod it is the termination log, which Kubernetes keeps with the pod's status: so an operator that was away while a
pod drained, or that only deleted it, still learns the final offsets, and can compare them with the broker's. Kubernetes
keeps 4096 bytes; where the queues do not fit, only the fact that all were confirmed is told.

    {"confirmed":true,"unfinished":0,"queues":[["orders","broker-a",0,1232]]}

`unfinished` counts messages whose handlers were cut short. Where it is missing, an older worker wrote the words: 0.

One that could not even begin leaves a sentence instead, which says why.
"""

import json
import logging
import os
from pathlib import Path
from typing import Final

from rocketfleet.control.messages import ControlMessageError, DrainOutcome

_log = logging.getLogger(__name__)
MOST_BYTES: Final = 4096


def encode(words: DrainOutcome) -> str:
    """As it is written: one line, never longer than is kept."""
    content = words.to_json()
    text = _json(content)
    return text if len(text.encode()) <= MOST_BYTES else _json({**content, "queues": None})


def decode(text: str | bytes) -> DrainOutcome | None:
    """Read it again; None if it is something else, such as the last lines of a log."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    try:
        return DrainOutcome.from_json(content)
    except ControlMessageError:
        return None


def sentence_of(text: str | bytes) -> str | None:
    """The sentence of one that failed; None if there is none, or it is the usual last words."""
    if decode(text) is not None:
        return None
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join(words.split()) or None


def leave(path: Path | None, words: DrainOutcome) -> None:
    """Write the file, if one is wanted. A worker that has drained does not fail for the sake of a file."""
    _write(path, encode(words).encode())


def leave_sentence(path: Path | None, sentence: str) -> None:
    """Say why it failed, where whoever looks after it finds it."""
    _write(path, " ".join(sentence.split()).encode()[:MOST_BYTES])


def _write(path: Path | None, content: bytes) -> None:
    if path is None:
        return
    try:
        # In place and not by a rename: the termination log is a mounted file. One write, so that no half is ever read.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)
    except OSError as error:
        _log.error("the last words could not be written to %s: %s", path, error.strerror)


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
