"""Queues change hands under live traffic and a 45 ms handler: nothing lost, nothing repeated, keys in order."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.handover.scene import Scene

MODES = ["Concurrent", "Orderly"]


@pytest.fixture
def scene(broker: Cluster, topic: str, group: str, tmp_path: Path) -> Callable[..., Scene]:
    return lambda **settings: Scene(broker.name_server, topic, group, tmp_path, **settings)


async def check_graceful(stage: Scene, mode: str) -> None:
    verdict = await stage.verdict()
    assert (len(verdict.lost), len(verdict.repeated)) == (0, 0), f"{verdict}\n{stage.describe()}"
    if mode == "Orderly":
        assert verdict.out_of_order == ()
    await stage.stop_all()
    # What was consumed is what is committed: the group stands at the end of every queue.
    assert await stage.committed() == await stage.ends()


@pytest.mark.parametrize("mode", MODES)
async def test_a_member_joins(scene: Callable[..., Scene], mode: str) -> None:
    async with scene(mode=mode) as stage:
        first = stage.start()
        await stage.settled(first)
        await stage.some_traffic()
        second = stage.start()
        await stage.settled(first, second)
        await stage.some_traffic()
        await check_graceful(stage, mode)


@pytest.mark.parametrize("mode", MODES)
async def test_a_member_leaves(scene: Callable[..., Scene], mode: str) -> None:
    async with scene(mode=mode) as stage:
        first, second = stage.start(), stage.start()
        await stage.settled(first, second)
        await stage.some_traffic()
        second.send(signal.SIGTERM)
        await stage.settled(first)
        await stage.some_traffic()
        await check_graceful(stage, mode)


@pytest.mark.parametrize(("mode", "strategy"), [("Concurrent", "AVG"), ("Orderly", "AVG"), ("Concurrent", "BALANCED")])
async def test_every_member_is_replaced_in_turn(scene: Callable[..., Scene], mode: str, strategy: str) -> None:
    async with scene(mode=mode, strategy=strategy) as stage:
        running = [stage.start(), stage.start(), stage.start()]
        await stage.settled(*running)
        for old in list(running):
            await stage.some_traffic(100)
            old.send(signal.SIGTERM)
            running.remove(old)
            running.append(stage.start())
            await stage.settled(*running)
        await check_graceful(stage, mode)


@pytest.mark.parametrize("mode", MODES)
async def test_a_member_is_killed(
    scene: Callable[..., Scene], mode: str, record_property: Callable[[str, object], None]
) -> None:
    async with scene(mode=mode) as stage:
        first, second = stage.start(), stage.start()
        await stage.settled(first, second)
        await stage.some_traffic()
        killed_at = second.send(signal.SIGKILL)
        # Well before the broker would let go of a dead member's locks by itself.
        settled_at = await stage.settled(first, patience=30.0)
        record_property("seconds_until_owned", settled_at - killed_at)
        await stage.some_traffic()
        verdict = await stage.verdict()
        record_property("verdict", str(verdict))
        print("KILL", mode, settled_at - killed_at, verdict)
        assert not verdict.lost
        # Nothing comes twice but what was in the member's hands: begun within the moment before it was killed.
        assert verdict.repeated <= second.begun_since(killed_at - 1.0), f"{verdict}\n{stage.describe()}"
        if mode == "Orderly":
            assert verdict.out_of_order == ()
        await stage.stop_all()
        assert await stage.committed() == await stage.ends()
