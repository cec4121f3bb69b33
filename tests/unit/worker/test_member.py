"""A member without a broker: one that cannot join must still be well-behaved, one that runs says how it is."""

import asyncio
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.support.waiting import until

from rocketfleet.allocation.strategies import build
from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.control import exit_codes
from rocketfleet.control.endpoints import Unavailable
from rocketfleet.control.messages import WorkerPhase
from rocketfleet.worker.member import MemberSpec, WorkerMember
from rocketfleet.worker.member_control import MemberControl


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, and nobody will while the test runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def member(name_server: str, join_timeout: float) -> WorkerMember:
    return WorkerMember(
        MemberSpec(
            config=ClientConfig((name_server,)),
            settings=ConsumerSettings("g", (Subscription("t"),)),
            strategy=build("AVG"),
            handler=inspect_handler(print),
            join_timeout=join_timeout,
        )
    )


async def test_it_gives_up_when_its_time_is_over(nobody: str) -> None:
    outcome = await member(nobody, 0.0).run()
    assert outcome.code == exit_codes.NOT_JOINED


async def test_it_can_be_stopped_while_it_tries(nobody: str) -> None:
    trying = member(nobody, 3600.0)
    control = MemberControl(trying, asyncio.get_running_loop())
    living = asyncio.create_task(trying.run())

    async def told() -> bool:
        return "cannot connect" in (await control.readiness())[0]

    await until(told)
    assert await control.health() == []
    assert trying.phase is WorkerPhase.JOINING
    with pytest.raises(Unavailable, match="joining"):
        await control.rebalance()
    assert (await control.assignment()).queues == ()
    first, second = await asyncio.gather(control.drain(), control.drain())
    assert first == second
    assert first.confirmed is True
    assert (await living).code == exit_codes.DRAINED
    assert (await control.readiness()) == ["the worker is closed"]


class Answering:
    """A consumer that says itself what is wrong with it."""

    def __init__(self) -> None:
        self.ready: list[str] = ["3 queues of broker-a are not owned yet"]
        self.queues: list[str] = []
        self.ended: list[str] = []
        self.rebalancer = SimpleNamespace(last_round=time.monotonic(), members=("me",), allocated=frozenset())
        self.holdings = SimpleNamespace(queues=frozenset())

    def ready_problems(self) -> list[str]:
        return self.ready

    def queue_problems(self) -> list[str]:
        return self.queues

    def ended_tasks(self) -> list[str]:
        return self.ended


def running(consumer: object) -> WorkerMember:
    made = member("127.0.0.1:1", 1.0)
    made.client_id, made.phase, made._joined_at = "me", WorkerPhase.RUNNING, time.monotonic()
    made._consumer = consumer  # type: ignore[assignment]  # as much of one as is asked
    return made


def test_the_consumer_says_whether_it_is_ready() -> None:
    consumer = Answering()
    made = running(consumer)
    assert (made.not_ready(), made.is_settled) == (consumer.ready, False)
    consumer.ready = []
    assert (made.not_ready(), made.is_settled) == ([], True)
    consumer.ready = ["one has gone again"]
    assert (made.not_ready(), made.is_settled) == ([], False), "once ready, it stays so while it runs"


def test_the_consumer_says_what_is_wrong_with_its_queues() -> None:
    consumer = Answering()
    made = running(consumer)
    assert made.problems() == []
    consumer.queues = ["t@broker-a/0: its task has ended; this is a bug in the consumer"]
    assert made.problems() == consumer.queues


def test_the_consumer_says_which_of_its_tasks_have_ended() -> None:
    consumer = Answering()
    made = running(consumer)
    consumer.ended = ["rebalance g", "commit g"]
    assert made.problems() == [
        f"the consumer's task '{name} g' has ended by itself" for name in ("commit", "rebalance")
    ]
