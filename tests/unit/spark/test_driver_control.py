"""A driver as others see it: the same answers as a worker's, and sentences for what keeps it from starting."""

import asyncio
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.handover.holdings import FinalOffset
from rocketfleet.control import exit_codes
from rocketfleet.control.endpoints import Endpoints
from rocketfleet.control.messages import WorkerPhase
from rocketfleet.control.server import ControlServer
from rocketfleet.control.token import Token
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.spark.driver.control import DriverControl
from rocketfleet.spark.driver.driver import Driver, DriverSpec, QueryStanding
from rocketfleet.spark.driver.progress import BatchProgress
from rocketfleet.spark.driver.session import DriverPlace
from rocketfleet.spark.driver.settings import settings_of
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.outcome import Outcome

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(3)]
BATCH = BatchProgress(7, 100, 50.0, 2.0, "2026-01-31T08:00:00Z", dict.fromkeys(QUEUES, 5))


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Membership:
    """As much of a GroupMember as is looked at."""

    members = ("orders-0@u0",)
    queues = tuple(QUEUES)


def driver(pipeline: str = "shop:revenue", clock: Time | None = None, **spark: Any) -> Driver:
    content = {
        "groupName": "shop",
        "subscriptions": [{"topic": "orders"}],
        "spark": {"pipeline": pipeline, "checkpoint": "/c", **spark},
    }
    config = ClientConfig("127.0.0.1:1", client_id="orders-0@u0")
    return Driver(DriverSpec(settings_of(content), config, DriverPlace()), clock or Time())


def running(**facts: Any) -> Driver:
    made = driver(**facts)
    made.phase = WorkerPhase.RUNNING
    made.standing = QueryStanding(dict.fromkeys(QUEUES, 5), 0, BATCH)
    made._member = Membership()  # type: ignore[assignment]
    return made


class Port:
    """A driver's control port, and the controller's calls to it."""

    def __init__(self, made: Driver) -> None:
        self._server = ControlServer(Endpoints(DriverControl(made), Token("secret")).answer)
        self.calls = WorkerCalls()
        self.address = ""

    async def __aenter__(self) -> Self:
        host, number = await self._server.start("127.0.0.1", 0)
        self.address = f"{host}:{number}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close(1.0)


async def test_the_controller_takes_it_for_a_member_with_every_queue() -> None:
    async with Port(running()) as port:
        found = await port.calls.assignment(port.address, "secret")
        assert await port.calls.ready(port.address)
        await port.calls.rebalance(port.address, "secret")
    assert found.client_ids == ("orders-0@u0",)
    assert found.joined
    assert found.settled
    assert found.owners == {queue: frozenset({"orders-0@u0"}) for queue in QUEUES}
    assert found.progress is not None
    assert (found.progress.batch, found.progress.messages_per_second) == (7, 50.0)


async def test_a_queue_that_the_query_does_not_read_yet_is_nobody_s() -> None:
    made = running()
    made.standing = replace(made.standing, done=dict.fromkeys(QUEUES[:2], 5))
    async with Port(made) as port:
        found = await port.calls.assignment(port.address, "secret")
    assert set(found.owners) == set(QUEUES[:2])
    assert not found.settled


async def test_a_drain_is_asked_for_once_and_answered_with_the_offsets() -> None:
    made = running()
    async with Port(made) as port:
        answers = [asyncio.create_task(port.calls.drain(port.address, "secret", 10.0)) for _ in range(2)]
        assert await asyncio.to_thread(made._stop.wait, 10.0)
        final = {queue: FinalOffset(9, confirmed=queue != QUEUES[2]) for queue in QUEUES}
        made.outcome.set_result(Outcome(exit_codes.NOT_CONFIRMED, final, 1.5))
        for answer in answers:
            outcome = await answer
            assert not outcome.confirmed, "one queue was not"
            assert outcome.offsets == dict.fromkeys(QUEUES, 9)
            assert outcome.seconds == 1.5
    assert not made._hurry.is_set(), "a caller that asks again does not hurry it"


def test_a_second_signal_hurries() -> None:
    made = driver()
    made.stop_or_hurry()
    assert (made._stop.is_set(), made._hurry.is_set()) == (True, False)
    made.stop_or_hurry()
    assert made._hurry.is_set()


def test_when_it_is_ready() -> None:
    made = driver()
    assert "does not run yet" in made.not_ready()[0]
    made = running()
    assert made.not_ready() == []
    made._member.members = ("somebody@else",)  # type: ignore[union-attr]
    assert "does not list" in made.not_ready()[0]
    made = running()
    made.standing = QueryStanding()
    assert "has not said" in made.not_ready()[0]
    made.phase = WorkerPhase.DRAINING
    assert made.not_ready() == ["the driver is draining"]


def test_a_restart_is_asked_for_only_while_the_query_should_run() -> None:
    clock = Time()
    made = running(clock=clock)
    clock.now += 119
    assert made.problems() == []
    clock.now += 2
    assert "JVM" in made.problems()[0]
    made.phase = WorkerPhase.DRAINING
    assert made.problems() == [], "a batch takes what it takes"


async def test_metrics_show_how_far_it_is() -> None:
    _, text = await DriverControl(running()).metrics()
    assert b'rocketfleet_spark_ready{group="shop"} 1.0' in text
    assert b'rocketfleet_spark_queue_offset{broker="broker-a",group="shop",queue="2",topic="orders"} 5.0' in text
    assert b"rocketfleet_spark_executors" not in text, "there are none to count"


# -- what keeps it from starting: no broker is asked before the pipeline is there -------------------------------------


@pytest.fixture
def pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, as far as anybody looks."""
    monkeypatch.setitem(sys.modules, "pyspark", types.ModuleType("pyspark"))


def test_without_spark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    outcome = driver().run()
    assert outcome.code == exit_codes.SETTINGS
    assert outcome.sentence is not None
    assert "in a checkout of Rocketfleet, pip install '.[spark]'" in outcome.sentence


BROKEN = "import nowhere_to_be_found\n"
RAISING = "raise RuntimeError('no\\nluck')\n"


@pytest.mark.usefixtures("pyspark")
@pytest.mark.parametrize(
    ("source", "pipeline", "sentence"),
    [
        (None, "not_there:revenue", "there is no module 'not_there' on the Python path"),
        ("", "driver_a:revenue", "driver_a has no function revenue"),
        ("revenue = 7\n", "driver_b:revenue", "is a int, and not a function"),
        (BROKEN, "driver_c:revenue", "ModuleNotFoundError: No module named 'nowhere_to_be_found' while it was loaded"),
        (RAISING, "driver_d:revenue", "raised RuntimeError: no luck while it was loaded"),
        ("raise SystemExit\n", "driver_e:revenue", "raised SystemExit while it was loaded"),
    ],
)
def test_a_pipeline_that_cannot_be_had_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, pipeline: str, sentence: str
) -> None:
    if source is not None:
        (tmp_path / f"{pipeline.partition(':')[0]}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    made = driver(pipeline)
    outcome = made.run()
    assert outcome.code == exit_codes.SETTINGS
    assert outcome.sentence is not None
    assert sentence in outcome.sentence
    assert "\n" not in outcome.sentence
    assert made.outcome.result() is outcome
    assert made.phase is WorkerPhase.CLOSED


@pytest.mark.usefixtures("pyspark")
def test_brokers_that_do_not_answer_are_asked_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "driver_f.py").write_text("def revenue(messages): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = driver("driver_f:revenue")
    made.spec = replace(made.spec, join_timeout=0.0)
    outcome = made.run()
    assert outcome.code == exit_codes.NOT_JOINED
    assert outcome.sentence is not None
    assert "could not be joined" in outcome.sentence
    assert "127.0.0.1:1" in outcome.sentence
