"""Does my handler survive a kill? A test of a handler with real workers on a real broker, to be copied.

    pip install 'rocketfleet[broker]' pytest
    pytest examples/testing

The handler under test is examples/handlers/to_sqlite.py. Rocketfleet promises that a message comes again if its worker
dies before the offset is safe; that this does no harm is the handler's part, and what is tested here.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from rocketfleet.testing import WorkerGroup

HANDLERS = Path(__file__).resolve().parents[1] / "handlers"


def orders() -> Iterator[str]:
    """An endless stream of them, numbered."""
    return (json.dumps({"id": number, "amount": 7}) for number in count())


def test_every_order_is_stored_once_although_workers_are_killed(
    worker_group: Callable[..., WorkerGroup], tmp_path: Path
) -> None:
    database = tmp_path / "orders.sqlite"
    group = worker_group("to_sqlite:store", path=HANDLERS, environment={"ORDERS_DB": str(database)})
    group.start(2)
    group.begin_traffic(orders(), rate=100)
    group.until_handled(200)

    group.kill_inside_handler()  # the message in its handler comes again, at the other worker
    group.start()
    group.until_handled(600)

    verdict = group.verdict()
    assert verdict.ok, str(verdict)  # Rocketfleet did its part: nothing was lost, and only the kill repeated something
    with sqlite3.connect(database) as stored:
        ids = [int(number) for (number,) in stored.execute("SELECT id FROM orders")]
    assert sorted(ids) == list(range(verdict.sent))


def test_an_order_that_cannot_be_read_does_not_stop_the_others(
    worker_group: Callable[..., WorkerGroup], tmp_path: Path
) -> None:
    database = tmp_path / "orders.sqlite"
    group = worker_group("to_sqlite:store", path=HANDLERS, environment={"ORDERS_DB": str(database)})
    group.start()
    group.send(['{"id": 1}', "this is no order", '{"id": 2}'])
    group.until_handled(2)

    verdict = group.verdict(timeout=5)
    assert {finding.family for finding in verdict.findings} == {"lost"}  # it is tried again, later and later
    assert verdict.handled == 2
