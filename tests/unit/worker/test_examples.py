"""The handlers in examples/ load as a worker loads them, and do what they say."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.results import RETRY, SUCCESS, Retry
from rocketfleet.worker.handler_loading import load_handler

DIRECTORY = Path(__file__).resolve().parents[3] / "examples" / "handlers"


@pytest.fixture
def load() -> Iterator[Callable[[str], Handler]]:
    path, modules = list(sys.path), set(sys.modules)
    yield lambda reference: load_handler(reference, DIRECTORY)
    sys.path[:] = path
    for name in sys.modules.keys() - modules:
        del sys.modules[name]


def message(body: bytes, msg_id: str = "id-1") -> Any:
    return SimpleNamespace(topic="orders", queue_id=3, queue_offset=7, msg_id=msg_id, body=body)


def test_every_example_is_tested_here() -> None:
    assert {path.stem for path in DIRECTORY.glob("*.py")} == {"print_messages", "to_sqlite", "deliver"}


def test_print_messages(load: Callable[[str], Handler], capsys: pytest.CaptureFixture[str]) -> None:
    handler = load("print_messages:handle")
    assert (handler.is_async, handler.takes_batch) == (False, False)
    assert handler.call(message(b"hello")) is None
    assert capsys.readouterr().out == "orders/3 @7 id-1 hello\n"


def test_to_sqlite(load: Callable[[str], Handler], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_DB", str(tmp_path / "orders.sqlite"))
    handler = load("to_sqlite:store")
    assert (handler.is_async, handler.takes_batch) == (False, True)
    good, other = message(json.dumps({"id": 5}).encode(), "a"), message(b'{"id": "x"}', "b")
    bad = [message(b"{", "c"), message(b"{}", "d"), message(b"5", "e"), message(b"\xff", "f")]
    assert handler.call([good, *bad, good, other]) == [SUCCESS, *[RETRY] * 4, SUCCESS, SUCCESS]
    assert handler.call([good]) == [SUCCESS]
    with sqlite3.connect(tmp_path / "orders.sqlite") as database:
        assert database.execute("SELECT msg_id, id FROM orders ORDER BY 1").fetchall() == [("a", "5"), ("b", "x")]
    sys.modules["to_sqlite"]._local.database.close()
    database.close()


async def test_deliver(load: Callable[[str], Handler], monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        received.append(line)
        writer.write(b"ok\n" if line != b"bad\n" else b"no\n")
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("DELIVER_TO", f"127.0.0.1:{port}")
    handler = load("deliver:deliver")
    assert (handler.is_async, handler.takes_batch) == (True, False)
    assert await handler.call(message(b"good")) is None
    assert isinstance(await handler.call(message(b"bad")), Retry)
    assert received == [b"good\n", b"bad\n"]
    server.close()
    await server.wait_closed()
    assert isinstance(await handler.call(message(b"good")), Retry)
