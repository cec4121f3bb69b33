"""A member that is frozen (SIGSTOP, a paused virtual machine) and wakes long after others have taken its queues over.

Its locks are out before the broker notices that it is silent, so its watcher takes care of its queues; when it wakes
it must neither deliver nor commit anything that is no longer its own. The broker of the first test forgets locks after
6 s instead of 60, and everything else is in proportion, so that it fits into an ordinary run; the second has the real
times.
"""

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.handover.scene import Scene


async def freeze_and_wake(stage: Scene, lock_lives: float, freeze: float, mode: str) -> tuple[float, str]:
    first, second = stage.start(), stage.start()
    await stage.settled(first, second)
    await stage.some_traffic()
    frozen_at = second.send(signal.SIGSTOP)

    lowest: dict[str, int] = await stage.committed()
    went_back: list[str] = []

    async def watch_offsets() -> None:
        while True:
            for queue, offset in (await stage.committed()).items():
                if offset < lowest[queue]:
                    went_back.append(f"{queue}: {lowest[queue]} → {offset}")
                lowest[queue] = max(lowest[queue], offset)
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch_offsets())
    # Replaced while it is still frozen: as soon as its lease is out, not when the broker misses its heartbeats.
    taken_over = await stage.until(
        lambda: stage.queues <= first.owned, "the other member takes care of every queue", patience=lock_lives + 30.0
    )
    await stage.until(lambda: time.time() - frozen_at > freeze, "the time to wake has come", patience=freeze + 10.0)
    second.send(signal.SIGCONT)
    await stage.settled(first, second)
    await stage.some_traffic()
    verdict = await stage.verdict()
    watching.cancel()
    assert not went_back
    assert not verdict.lost
    assert verdict.repeated <= second.begun_since(frozen_at - 1.0), f"{verdict}\n{stage.describe()}"
    if mode == "Orderly":
        # Out of order can only be what was in its hands when it froze: begun, and finished after it woke.
        assert set(verdict.out_of_order) <= second.begun_since(frozen_at - 1.0)
    await stage.stop_all()
    assert await stage.committed() == await stage.ends()
    return taken_over - frozen_at, str(verdict)


@pytest.mark.parametrize("mode", ["Concurrent", "Orderly"])
async def test_a_frozen_member_is_replaced_and_does_no_harm_when_it_wakes(
    make_cluster: Callable[..., Cluster], tmp_path: Path, mode: str, record_property: Callable[[str, object], None]
) -> None:
    lives = 6.0
    cluster = make_cluster(properties=(("rocketmq.broker.rebalance.lockMaxLiveTime", str(int(lives * 1000))),))
    topic, group = cluster.create_topic(), cluster.create_group()
    async with Scene(cluster.name_server, topic, group, tmp_path, mode=mode, lock_lives=lives) as stage:
        seconds, verdict = await freeze_and_wake(stage, lives, freeze=3 * lives, mode=mode)
    record_property("seconds_until_taken_over", seconds)
    record_property("verdict", verdict)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_frozen_for_ninety_seconds(
    broker: Cluster, topic: str, group: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    async with Scene(broker.name_server, topic, group, tmp_path, mode="Concurrent", rate=100.0) as stage:
        seconds, verdict = await freeze_and_wake(stage, 60.0, freeze=90.0, mode="Concurrent")
    record_property("seconds_until_taken_over", seconds)
    record_property("verdict", verdict)
