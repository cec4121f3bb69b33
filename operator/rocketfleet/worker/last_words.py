"""What a worker leaves behind when it ends: a file that says where each of its queues stood.

In a pod it is the termination log, which Kubernetes keeps with the pod's status: so an operator that was away while a
pod drained, or that only deleted it, still learns the final offsets, and can compare them with the broker's. Kubernetes
keeps 4096 bytes; where the queues do not fit, only the fact that all were confirmed is told.

    {"confirmed":true,"queues":[["orders","broker-a",0,1232]]}

One that could not even begin leaves a sentence instead, which says why.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
MOST_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class LastWords:
    """`offsets` is None where they did not fit, or nobody knew them."""

    confirmed: bool
    offsets: Mapping[MessageQueue, int] | None = None


def encode(words: LastWords) -> str:
    """As it is written: one line, never longer than is kept."""
    queues = None if words.offsets is None else [[*queue, offset] for queue, offset in sorted(words.offsets.items())]
    text = _json({"confirmed": words.confirmed, "queues": queues})
    return text if len(text.encode()) <= MOST_BYTES else _json({"confirmed": words.confirmed, "queues": None})


def decode(text: str | bytes) -> LastWords | None:
    """Read it again; None if it is something else, such as the last lines of a log."""
    try:
        content = json.loads(text)
        confirmed, queues = content["confirmed"], content["queues"]
        if not isinstance(confirmed, bool):
            return None
        if queues is None:
            return LastWords(confirmed)
        offsets = {MessageQueue(str(topic), str(broker), int(n)): int(offset) for topic, broker, n, offset in queues}
        return LastWords(confirmed, offsets)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def from_answer(answer: Mapping[str, Any]) -> LastWords:
    """The same facts out of an answer to POST /drain."""
    return LastWords(bool(answer["confirmed"]), dict(_offsets(answer["queues"])))


def _offsets(queues: Iterable[Mapping[str, Any]]) -> Iterable[tuple[MessageQueue, int]]:
    for entry in queues:
        yield MessageQueue(entry["topic"], entry["broker"], entry["queueId"]), int(entry["offset"])


def sentence_of(text: str | bytes) -> str | None:
    """The sentence of one that failed; None if there is none, or it is the usual last words."""
    if decode(text) is not None:
        return None
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join(words.split()) or None


def leave(path: Path | None, words: LastWords) -> None:
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
