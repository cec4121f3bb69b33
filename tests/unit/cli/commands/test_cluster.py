"""A broker in its first second fails to say its rates: it is asked again, and only then."""

from __future__ import annotations

import pytest

from rocketfleet.cli.commands import cluster
from rocketfleet.client.errors import ResponseError
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.command import Command, reply_to


class Broker:
    """Fails with these codes, one per call, then answers."""

    def __init__(self, *failures: ResponseCode) -> None:
        self._failures = list(failures)
        self.calls = 0

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        self.calls += 1
        if self._failures:
            return reply_to(command, self._failures.pop(0), "java.util.NoSuchElementException")
        return reply_to(command, 0, body=b'{"table":{"putTps":"1.0 1.0 1.0"}}')

    async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None:
        raise AssertionError


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PAUSE", 0.0)


async def test_a_broker_that_has_just_started_is_asked_again() -> None:
    broker = Broker(ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_ERROR)
    assert await cluster.broker_facts(broker, "b:1") == {"putTps": "1.0 1.0 1.0"}
    assert broker.calls == 3


async def test_a_broker_that_keeps_failing_is_told_in_the_end() -> None:
    broker = Broker(*[ResponseCode.SYSTEM_ERROR] * 100)
    with pytest.raises(ResponseError, match="NoSuchElement"):
        await cluster.broker_facts(broker, "b:1")
    assert 2 <= broker.calls <= 20


async def test_a_broker_that_refuses_is_asked_once() -> None:
    broker = Broker(ResponseCode.NO_PERMISSION)
    with pytest.raises(ResponseError):
        await cluster.broker_facts(broker, "b:1")
    assert broker.calls == 1
