"""A member that cannot join: there is no broker here, and it must still be well-behaved."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from tests.unit.worker.waiting import until

from rocketfleet.allocation.strategies import build
from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.worker import exit_codes
from rocketfleet.worker.endpoints import Unavailable
from rocketfleet.worker.member import Member, MemberSpec, WorkerPhase
from rocketfleet.worker.member_control import MemberControl


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, and nobody will while the test runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def member(name_server: str, join_timeout: float) -> Member:
    return Member(
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
    assert (await control.assignment())["queues"] == []
    first, second = await asyncio.gather(control.drain(), control.drain())
    assert first == second
    assert first["confirmed"] is True
    assert (await living).code == exit_codes.DRAINED
    assert (await control.readiness()) == ["the worker is closed"]
