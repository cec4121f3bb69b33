"""The test groups' pipeline: each message is recorded from the task that got it, begun and finished.

A batch is done when all its records are kept, so what is committed was recorded. The functions go to executors by their
names: this file and the handler's beside it are found there, out of the same ConfigMap.
"""

import importlib
import time
from collections.abc import Iterable
from typing import Any

from rocketfleet.wire.queue import MessageQueue


def record(messages: Any) -> Any:
    return messages.select("topic", "broker", "queueId", "queueOffset", "body").writeStream.foreachBatch(note_batch)


def note_batch(batch: Any, _number: int) -> None:
    batch.foreachPartition(note_rows)


def note_rows(rows: Iterable[Any]) -> None:
    handler = importlib.import_module("handler")  # a module of its own there
    for row in rows:
        queue = MessageQueue(row.topic, row.broker, row.queueId)
        facts = {"queue": str(queue), "offset": row.queueOffset, "id": bytes(row.body).decode()}
        handler.note("begin", **facts)
        time.sleep(handler.SECONDS)
        handler.note("finish", **facts)
