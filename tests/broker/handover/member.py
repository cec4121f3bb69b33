"""One member of a group, as a process of its own: what the handover tests start, stop, freeze and kill.

Its handler takes a while (45 ms) and writes a line when it begins and one when it has finished, to a file that is
opened for appending, so that even a member killed by SIGKILL leaves a true record. SIGTERM stops it gracefully.

    python -m tests.broker.handover.member SETTINGS.json
"""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import DEFAULT_HEARTBEAT, ConsumeMode, ConsumerSettings, Handover
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import ReceivedMessage


class Record:
    """A line an event. One `write` each, on a descriptor opened for appending."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, event: str, **facts: object) -> None:
        line = json.dumps({"event": event, "time": time.time(), **facts}) + "\n"
        os.write(self._file, line.encode())


async def run(given: dict[str, Any]) -> None:
    record = Record(Path(given["record"]))
    handler_seconds = given["handler_seconds"]

    def handle(message: ReceivedMessage) -> None:
        facts = {"queue": str(message.queue), "offset": message.queue_offset, "id": message.body.decode()}
        record.note("begin", **facts)
        time.sleep(handler_seconds)
        record.note("finish", **facts)

    settings = ConsumerSettings(
        group=given["group"],
        subscriptions=(Subscription(given["topic"]),),
        consume_mode=ConsumeMode(given["mode"]),
        handover=Handover(given["handover"]),
        consume_from_where=ConsumeFromWhere(given["where"]),
        lock_lives=given["lock_lives"],
        heartbeat_interval=min(DEFAULT_HEARTBEAT, given["lock_lives"]),
    )
    config = ClientConfig(given["name_server"], client_id=given["client_id"])
    consumer = Consumer(config, settings, handle, strategy=given["strategy"])
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await consumer.start()
    record.note("started")
    owned: list[str] | None = None
    while not stopping.is_set():
        now = sorted(map(str, consumer.owned))
        if now != owned:
            owned = now
            record.note("owns", queues=owned)
        try:
            async with asyncio.timeout(0.02):
                await stopping.wait()
        except TimeoutError:
            pass
    record.note("stopping")
    final = await consumer.stop()
    record.note("owns", queues=[])
    record.note(
        "stopped",
        offsets={str(q): f.offset for q, f in final.items()},
        confirmed=all(f.confirmed for f in final.values()),
    )


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {given['client_id']} %(message)s", stream=sys.stderr)
    asyncio.run(run(given))


if __name__ == "__main__":
    main()
