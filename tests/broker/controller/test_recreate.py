"""Edits that members of a live group have to agree on, under traffic: nothing is lost or repeated, nobody mixed.

What each process was really started with is read from its settings file.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene

from rocketfleet.api.status import ConditionType
from rocketfleet.client.config import ClientConfig
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.message import Message

DEFAULTS = {"consumeMode": "Concurrent"}  # a settings file has only what differs from them


@contextlib.asynccontextmanager
async def watched(scene: GroupScene, key: str) -> AsyncIterator[tuple[set[str], set[str]]]:
    """All values that a setting had in processes that ran at the same time, and the reasons of Progressing."""
    together: set[str] = set()
    reasons: set[str] = set()

    async def watch() -> None:
        while True:
            found = set()
            for member in scene.members:
                with contextlib.suppress(OSError, ValueError):  # it is just written, or removed
                    settings = json.loads(member.files.settings.read_text())
                    found |= {json.dumps(settings.get(key, DEFAULTS.get(key)))} if member.running else set()
            together.add(" and ".join(sorted(found)))
            reasons.update(one.reason for one in scene.status.conditions or () if one.type is ConditionType.PROGRESSING)
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    try:
        yield together, reasons
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def subscribed(topic: str, expression: str) -> dict[str, Any]:
    return {"subscriptions": [{"topic": topic, "expression": expression}]}


async def test_another_expression_recreates_the_group(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, replicas=3, **subscribed(topic, "paid")) as scene:
        scene.tag = "paid"
        scene.begin_traffic()
        scene.apply()
        await scene.ready(3)
        await scene.some_traffic()
        before = {member.uid for member in scene.members}
        async with watched(scene, "subscriptions") as (together, reasons):
            scene.apply(**subscribed(topic, "paid || refunded"))
            await scene.until(
                lambda: bool(scene.members) and not before & {member.uid for member in scene.members}, "all are new"
            )
            # From here on whoever consumes wants these as well: one member of before, and some would be skipped.
            async with Producer(ClientConfig(broker.name_server), f"{scene.name}-refunds") as producer:
                for number in range(100):
                    await producer.send(Message(topic, f"r{number % 8}:{number}".encode(), tags="refunded"))
                    scene.sent.append(f"r{number % 8}:{number}")
            await scene.ready(3)
            await scene.some_traffic()
        assert not [one for one in together if " and " in one], together
        assert len(together - {""}) == 2, "both were seen"
        assert "Recreate" in reasons
        assert scene.reasons().count(EventReason.RECREATING) == 1
        verdict = await scene.verdict()
        assert (len(verdict.lost), len(verdict.repeated)) == (0, 0), f"{verdict}\n{scene.describe()}"
        bad = {EventReason.DRAIN_TIMED_OUT, EventReason.OFFSETS_UNSAFE, EventReason.MIXED}
        assert not bad & set(scene.reasons()), scene.describe()


@pytest.mark.parametrize(("first", "then"), [("Concurrent", "Orderly"), ("Orderly", "Concurrent")])
async def test_another_consume_mode_recreates_the_group(
    broker: Cluster, topic: str, tmp_path: Path, first: str, then: str
) -> None:
    async with GroupScene(broker, topic, tmp_path, replicas=2, consumeMode=first) as scene:
        scene.begin_traffic()
        scene.apply()
        await scene.ready(2)
        await scene.some_traffic()
        async with watched(scene, "consumeMode") as (together, _):
            scene.apply(consumeMode=then)
            await scene.ready(2)
            await scene.some_traffic()
        assert together <= {"", f'"{first}"', f'"{then}"'}
        assert f'"{then}"' in together
        verdict = await scene.verdict()
        assert (len(verdict.lost), len(verdict.repeated)) == (0, 0), f"{verdict}\n{scene.describe()}"


async def test_another_image_or_number_of_threads_is_rolled_out(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, replicas=2) as scene:
        scene.begin_traffic()
        scene.apply()
        await scene.ready(2)
        async with watched(scene, "consume") as (together, reasons):
            scene.apply(consume={"threads": 3})
            await scene.ready(2)
        assert [one for one in together if " and " in one], "old and new were there together"
        assert "" not in together, "somebody was there all the time"
        assert "Recreate" not in reasons
        verdict = await scene.verdict()
        assert (len(verdict.lost), len(verdict.repeated)) == (0, 0), f"{verdict}\n{scene.describe()}"
