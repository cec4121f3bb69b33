"""One member of a replayed group, as a process of its own.

It is warm before it is needed: it joins when the file `go` is there. Its handler writes down when it begins and when it
has finished, and lets no more messages finish than the file `gate` says; without that file, all. SIGTERM drains it.
With the name of a mutant it breaks the rule that the mutant breaks.

    python -m tests.broker.replay.member SETTINGS.json
"""

import asyncio
import json
import logging
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.broker.handover.member import Record
from tests.support.waiting import until
from tests.unit.protocol.mutants import MUTANTS

from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.handover import lock_keeper, ownership, roster
from rocketfleet.consumer.offset_storage import beginning
from rocketfleet.consumer.settings import DEFAULT_HEARTBEAT, ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import ReceivedMessage

_LOOK = 0.005
_NEEDED_WITHIN = 240.0
_broken = ExitStack()
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
    go = Path(given["go"])
    await until(go.exists, "this member is needed", within=_NEEDED_WITHIN, every=_LOOK)
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


def break_rule(name: str) -> None:
    """For as long as this process lives. Functions are replaced wherever they were imported to."""
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    theirs = [vars(module) for module in (ownership, lock_keeper, roster, beginning)]
    before = {name: value for names in theirs for name, value in names.items() if callable(value)}
    _broken.enter_context(mutant.breaks())
    if not mutant.scenario.times.grace:
        roster.GRACE_SECONDS = 0.0
    after = {name: value for names in theirs for name, value in names.items() if callable(value)}
    replaced = {id(before[name]): after[name] for name in before if after[name] is not before[name]}
    for module in [module for name, module in sys.modules.items() if name.startswith("rocketfleet.")]:
        for attribute, value in list(vars(module).items()):
            if id(value) in replaced:
                setattr(module, attribute, replaced[id(value)])


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    logging.basicConfig(level=logging.DEBUG, format=f"%(asctime)s {given['client_id']} %(message)s", stream=sys.stderr)
    logging.getLogger("asyncio").setLevel(logging.INFO)
    if given["mutant"]:
        break_rule(given["mutant"])
    asyncio.run(run(given))


if __name__ == "__main__":
    main()
