"""A handler that hangs while its member is drained: what `shutdown.onTimeout` says is what happens, and it is told."""

from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene

from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.controller.planning import drain
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.message import Message

MESSAGES = 4

# Notes each message when it begins it, and does not come back while the file is there.
HANDLER = """
import os, time
from pathlib import Path

BEGUN, HOLD = Path(os.environ["BEGUN"]), Path(os.environ["HOLD"])

def handle(message):
    (BEGUN / message.msg_id).touch()
    while HOLD.exists():
        time.sleep(0.01)
"""


class Hanging(GroupScene):
    """A group of one member, whose handlers hang while `hold` is there."""

    def __init__(self, broker: Cluster, topic: str, directory: Path, **shutdown: Any) -> None:
        code = directory / "code"
        code.mkdir()
        (code / "hanging_handler.py").write_text(HANDLER)
        super().__init__(
            broker,
            topic,
            directory,
            worker={"handler": "hanging_handler:handle", "path": "code"},
            shutdown={"drainTimeoutSeconds": 1, **shutdown},
        )
        self.begun, self.hold = directory / "begun", directory / "hold"
        self.begun.mkdir()
        self.environment |= {"BEGUN": str(self.begun), "HOLD": str(self.hold)}

    async def hang(self) -> None:
        """One member, and all that was sent is in its handlers."""
        self.apply(replicas=1)
        await self.ready(1)
        self.hold.touch()
        async with Producer(self.client, f"{self.name}-sender") as producer:
            for number in range(MESSAGES):
                await producer.send(Message(self._topic, f"m{number}".encode()))
        await self.until(lambda: len(list(self.begun.iterdir())) == MESSAGES, "handlers have the messages")

    def said(self, reason: EventReason) -> list[str]:
        return [event.message for event in self.events if event.reason is reason]


@pytest.fixture(autouse=True)
def _soon_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "DRAIN_MARGIN", 1.0)


async def test_wait_waits_and_says_so(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with Hanging(broker, topic, tmp_path, onTimeout="Wait") as scene:
        await scene.hang()
        (member,) = scene.members
        scene.apply(replicas=0)
        await scene.until(lambda: EventReason.DRAIN_TIMED_OUT in scene.reasons(), "the time is over")
        assert member.running
        assert member in scene.members
        assert scene.condition(ConditionType.DRAINING) is Truth.TRUE
        assert EventReason.DRAINED not in scene.reasons()
        (told,) = scene.said(EventReason.DRAIN_TIMED_OUT)
        assert member.name in told
        assert "Wait" in told
        assert await scene.member_ids(), "it is in the group, and has its queues"
        scene.hold.unlink()
        await scene.until(lambda: not scene.members, "it is done, and let go")
        assert scene.reasons().count(EventReason.DRAINED) == 1
        assert scene.reasons().count(EventReason.DRAIN_TIMED_OUT) == 1
        assert scene.status.last_drain is None or scene.status.last_drain.unfinished is None
        assert len(list(scene.begun.iterdir())) == MESSAGES, "nothing was begun twice"
        assert await scene.at_the_end()


async def test_proceed_goes_on_and_says_what_was_cut_short(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with Hanging(broker, topic, tmp_path, onTimeout="Proceed") as scene:
        await scene.hang()
        (member,) = scene.members
        scene.apply(replicas=0)
        await scene.until(lambda: not scene.members, "it is deleted all the same")
        (told,) = scene.said(EventReason.DRAIN_TIMED_OUT)
        assert member.name in told
        assert f"{MESSAGES} messages were still being handled" in told
        assert EventReason.DRAINED not in scene.reasons()
        await scene.until(lambda: scene.status.last_drain is not None, "the drain is in the status")
        assert scene.status.last_drain is not None
        assert scene.status.last_drain.unfinished == MESSAGES
        assert not await scene.at_the_end(), "what was cut short is not committed"


async def test_the_deletion_of_the_group_ends_though_a_drain_may_wait(
    broker: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "DELETION_MARGIN", 1.0)
    async with Hanging(broker, topic, tmp_path, onTimeout="Wait") as scene:
        await scene.hang()
        scene.delete()
        await scene.until(lambda: scene.group is None, "the group is gone, and its member")
        assert not scene.members
        assert EventReason.DELETION_GAVE_UP in scene.reasons()
