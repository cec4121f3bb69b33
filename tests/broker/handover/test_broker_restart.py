"""A broker restarts in good order while its members work through a backlog: nothing lost, nothing repeated.

The broker forgets locks and members, and the members come back one by one. What they had in hand when it went is
handled and not committed; whoever else took such a queue would repeat it.
"""

import asyncio
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.handover.scene import Scene

# How much keeps two members busy while a broker ends and begins again.
BACKLOG = {"Concurrent": 5000, "Orderly": 1600}


@pytest.mark.parametrize("mode", list(BACKLOG))
async def test_a_broker_restarts(broker: Cluster, topic: str, group: str, tmp_path: Path, mode: str) -> None:
    async with Scene(broker.name_server, topic, group, tmp_path, mode=mode, rate=100_000) as stage:
        await stage.some_traffic(BACKLOG[mode])
        await stage.stop_traffic()  # a send whose answer is lost is sent again, and would be seen as a repetition
        members = stage.start(), stage.start(), stage.start()
        await stage.settled(*members)
        handled = len(stage.events)
        await stage.until(lambda: len(stage.events) > handled + 50, "members are at work")
        await asyncio.to_thread(broker.restart)
        verdict = await stage.verdict()
        assert (len(verdict.lost), len(verdict.repeated)) == (0, 0), f"{verdict}\n{stage.describe()}"
        if mode == "Orderly":
            assert verdict.out_of_order == ()
        await stage.settled(*members)
        await stage.stop_all()
        assert await stage.committed() == await stage.ends()
