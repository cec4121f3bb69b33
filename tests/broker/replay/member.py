"""One member of a replayed group, as a process of its own.

It is warm before it is needed: it joins when the file `go` is there. Its handler writes down when it begins and when it
has finished, and lets no more messages finish than the file `gate` says; without that file, all. SIGTERM drains it.

    python -m tests.broker.replay.member SETTINGS.json
"""

import asyncio
import json
import logging
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.broker.handover.member import Record

from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import DEFAULT_HEARTBEAT, ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import ReceivedMessage

_LOOK = 0.005
_HANDLER_SECONDS = 0.01


class Gate:
    """How many messages may finish."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._finished = 0
        self._guard = threading.Lock()

    def pass_one(self) -> None:
        """Wait until one more may finish."""
        while True:
            with self._guard:
                if self._finished < self._allowed():
                    self._finished += 1
                    return
            time.sleep(_LOOK)

    def _allowed(self) -> float:
        try:
            return int(self._path.read_text() or 0)
        except FileNotFoundError:
            return float("inf")


async def run(given: dict[str, Any]) -> None:
    record, gate = Record(Path(given["record"])), Gate(Path(given["gate"]))

    def handle(message: ReceivedMessage) -> None:
        facts = {"queue": message.queue.queue_id, "offset": message.queue_offset, "id": message.body.decode()}
        record.note("begin", at=time.monotonic(), **facts)
        time.sleep(_HANDLER_SECONDS)
        gate.pass_one()
        record.note("finish", at=time.monotonic(), **facts)

    settings = ConsumerSettings(
        group=given["group"],
        subscriptions=(Subscription(given["topic"]),),
        consume_mode=ConsumeMode(given["mode"]),
        consume_from_where=ConsumeFromWhere(given["where"]),
        lock_lives=given["lock_lives"],
        heartbeat_interval=min(DEFAULT_HEARTBEAT, given["lock_lives"]),
    )
    config = ClientConfig(given["name_server"], client_id=given["client_id"])
    consumer = Consumer(config, settings, handle, strategy="AVG")
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    record.note("warm")
    while not Path(given["go"]).exists():
        await asyncio.sleep(_LOOK)
    await consumer.start()
    owned: list[int] | None = None
    while not stopping.is_set():
        now = sorted(queue.queue_id for queue in consumer.owned if queue.topic == given["topic"])
        if now != owned:
            owned = now
            record.note("owns", queues=owned)
        try:
            async with asyncio.timeout(0.02):
                await stopping.wait()
        except TimeoutError:
            pass
    final = await consumer.stop()
    record.note("owns", queues=[])
    record.note("stopped", confirmed=all(end.confirmed for end in final.values()))


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    logging.basicConfig(level=logging.DEBUG, format=f"%(asctime)s {given['client_id']} %(message)s", stream=sys.stderr)
    logging.getLogger("asyncio").setLevel(logging.INFO)
    asyncio.run(run(given))


if __name__ == "__main__":
    main()
