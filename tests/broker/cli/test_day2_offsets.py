"""Lag, snapshot, reset and restore on a real broker, from a manifest."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.broker.cli.running import rocketfleet
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Got, Scene, until

from rocketfleet.cli.moving_offsets.offset_target import time_text
from rocketfleet.client.errors import SystemBusy
from rocketfleet.client.requests import broker_offsets
from rocketfleet.wire.queue import MessageQueue

QUEUES = 4


class Group:
    """A group with a topic of its own, its manifest, and commands about it."""

    def __init__(self, scene: Scene, group: str, topic: str, directory: Path) -> None:
        self.scene, self.name, self.topic, self.directory = scene, group, topic, directory
        self.manifest = directory / "group.yaml"
        self.write_manifest()

    def write_manifest(self, **spec: Any) -> None:
        content = {
            "apiVersion": "rocketfleet.io/v1alpha1",
            "kind": "ConsumerGroup",
            "metadata": {"name": "mine"},
            "spec": {
                "groupName": self.name,
                "cluster": {"nameServers": [self.scene.cluster.name_server]},
                "subscriptions": [{"topic": self.topic}],
                "worker": {"handler": "handlers:handle"},
                **spec,
            },
        }
        self.manifest.write_text(json.dumps(content))  # JSON is YAML

    async def run(self, command: str, *arguments: str, stdin: bytes = b"") -> CompletedProcess[str]:
        return await asyncio.to_thread(
            rocketfleet, command, "mine", *arguments, "-f", str(self.manifest), stdin=stdin, directory=self.directory
        )

    async def answer(self, command: str, *arguments: str) -> Any:
        done = await self.run(command, *arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    async def fill(self, *counts: int) -> None:
        """So many messages more to queue 0, 1, …; all of them can be read then."""
        for queue, count in enumerate(counts):
            there = len(await self.scene.read(self.topic, queue))
            await until(partial(self._stored, queue, count), "a broker that is busy with other things takes messages")
            await self.scene.found(self.topic, there + count, queue)

    async def _stored(self, queue: int, count: int) -> bool:
        try:
            await self.scene.fill(self.topic, queue, count)
        except SystemBusy:  # nothing was stored
            return False
        return True

    async def commit(self, *offsets: int | None) -> None:
        for queue, offset in enumerate(offsets):
            if offset is not None:
                await self.scene.commit(self.name, self.topic, offset, queue)

    async def offsets(self) -> list[int | None]:
        return [await self.scene.committed(self.name, self.topic, queue) for queue in range(QUEUES)]

    async def lags(self) -> list[int | None]:
        told = await self.answer("lag")
        return [row["lag"] for row in told["queues"] if row["topic"] == self.topic]


@pytest.fixture
async def scene(broker: Cluster) -> AsyncIterator[Scene]:
    made = Scene(broker)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def mine(scene: Scene, group: str, make_topic: Callable[..., str], tmp_path: Path) -> Group:
    return Group(scene, group, make_topic(queues=QUEUES), tmp_path)


async def test_lag_without_a_running_consumer(mine: Group) -> None:
    await mine.fill(10, 7, 3)
    await mine.commit(4, 7, None, 0)
    told = await mine.answer("lag")
    rows = {row["queue"]: row for row in told["queues"]}
    assert [rows[n]["committed"] for n in range(QUEUES)] == [4, 7, None, 0]
    assert [rows[n]["max_offset"] for n in range(QUEUES)] == [10, 7, 3, 0]
    # The group has begun, so a queue without an offset is read from its beginning.
    assert [rows[n]["lag"] for n in range(QUEUES)] == [6, 0, 3, 0]
    assert rows[0]["age_seconds"] >= 0
    assert rows[1]["age_seconds"] == 0.0
    assert rows[2]["age_seconds"] >= 0
    assert told["lag"] | {"age_seconds": None} == {
        "queues": 4, "unknown": 0, "lag": 9, "known": 9, "age_seconds": None
    }  # fmt: skip

    mine.write_manifest(consumeFromWhere="FirstOffset")
    assert await mine.lags() == [6, 0, 3, 0]
    # A broadcasting group's members keep their offsets themselves.
    mine.write_manifest(consumeFromWhere="FirstOffset", messageModel="Broadcasting")
    broadcasting = await mine.run("lag")
    assert "the group is broadcasting" in broadcasting.stderr


async def test_lag_and_members_of_a_running_group(mine: Group, scene: Scene, broker: Cluster) -> None:
    got = Got()
    member = await scene.member(mine.name, mine.topic, got)
    await until(lambda: len([queue for queue in member.owned if queue.topic == mine.topic]) == QUEUES)
    await mine.fill(5, 5)
    await until(lambda: len(got) == 10)

    async def caught_up() -> bool:
        return await mine.lags() == [0, 0, 0, 0]

    await until(caught_up, "the member has committed")
    told = await mine.answer("lag")
    assert {tuple(row["owner"]) for row in told["queues"] if row["topic"] == mine.topic} == {(member.client_id,)}
    ours = {
        row["queue"]: (row["max_offset"], row["committed"] or 0) for row in told["queues"] if row["topic"] == mine.topic
    }
    # mqadmin can tell only of groups that have consumed.
    theirs = await asyncio.to_thread(broker.admin, "consumerProgress", "-g", mine.name)
    lines = [line.split() for line in theirs.splitlines() if line.startswith(mine.topic)]
    assert ours == {int(line[2]): (int(line[3]), int(line[4])) for line in lines}
    (row,) = await mine.answer("members")
    assert (row["client_id"], row["queues"]) == (member.client_id, QUEUES)
    status = await mine.answer("status")
    assert status["members"] == [member.client_id]
    assert status["queues"] == {"total": QUEUES, "owned": QUEUES, "unowned": 0}
    assert status["lag"]["lag"] == 0


async def test_a_topic_that_is_not_there_is_said(mine: Group) -> None:
    mine.topic = f"{mine.topic}-none"
    mine.write_manifest()
    done = await mine.run("lag")
    assert done.returncode == 1
    assert f"no route to topic {mine.topic}" in done.stderr
    refused = await mine.run("reset-offsets", "--to", "latest", "--yes")
    assert refused.returncode == 1
    assert f"no route to topic {mine.topic}" in refused.stderr


async def test_resets_to_both_ends_and_back(mine: Group) -> None:
    await mine.fill(10, 7, 3)
    await mine.commit(4, 7, None, 99)
    preview = await mine.run("reset-offsets", "--to", "latest", "--dry-run")
    assert preview.returncode == 0
    assert "6 messages would be skipped" in preview.stdout
    assert await mine.offsets() == [4, 7, None, 99]

    told = await mine.answer("reset-offsets", "--to", "latest", "--yes")
    assert await mine.offsets() == [10, 7, 3, 0]
    assert (told["written"], told["skipped"], told["repeated"]) == (3, 6, 0)
    assert [row["messages"] for row in told["queues"]] == [6, 0, None, 0]
    again = await mine.run("reset-offsets", "--to", "latest", "--yes")
    assert "every offset is there already" in again.stdout

    assert (await mine.answer("reset-offsets", "--to", "earliest", "--yes"))["repeated"] == 20
    assert await mine.offsets() == [0, 0, 0, 0]


async def test_a_reset_is_what_the_next_member_begins_from(mine: Group, scene: Scene) -> None:
    await mine.fill(10, 7)
    await mine.commit(10, 7, 0, 0)
    await mine.answer("reset-offsets", "--to", "earliest", "--yes")
    got = Got()
    await scene.member(mine.name, mine.topic, got)
    await until(lambda: len(got) == 17)


async def test_a_reset_to_a_time(mine: Group, scene: Scene) -> None:
    await mine.fill(3)
    newest = (await scene.read(mine.topic))[-1].store_timestamp
    cut = newest // 1000 + 1  # the commands' times are whole seconds
    await until(lambda: time.time() > cut)
    await mine.fill(2)
    messages = await scene.read(mine.topic)
    assert [message.store_timestamp >= cut * 1000 for message in messages] == [False] * 3 + [True] * 2
    told = await mine.answer("reset-offsets", "--to", time_text(cut), "--yes")
    assert [row["to"] for row in told["queues"]] == [3, 0, 0, 0]
    assert await mine.offsets() == [3, 0, 0, 0]
    await mine.answer("reset-offsets", "--to", "-1h", "--yes")
    assert await mine.offsets() == [0, 0, 0, 0]


async def test_a_group_with_members_is_left_alone(mine: Group, scene: Scene) -> None:
    await mine.fill(5)
    member = await scene.member(mine.name, mine.topic, Got())
    await until(lambda: len([queue for queue in member.owned if queue.topic == mine.topic]) == QUEUES)

    async def consumed() -> bool:
        return (await mine.offsets())[0] == 5

    await until(consumed)
    for command in (["reset-offsets", "--to", "earliest", "--yes"], ["reset-offsets", "--to", "latest", "--yes"]):
        refused = await mine.run(*command)
        assert refused.returncode == 1
        assert f"has 1 member at the broker ({member.client_id})" in refused.stderr
        assert "Stop them first" in refused.stderr
    assert (await mine.offsets())[0] == 5


async def test_a_no_changes_nothing(mine: Group) -> None:
    await mine.fill(5)
    await mine.commit(2)
    done = await mine.run("reset-offsets", "--to", "latest", stdin=b"n\n")
    assert done.returncode == 1
    assert "Write 4 offsets" in done.stderr
    assert (await mine.offsets())[0] == 2


async def test_an_earlier_reset_at_the_broker_does_not_swallow_ours(mine: Group, scene: Scene) -> None:
    await mine.fill(6)
    await mine.commit(1, 0, 0, 0)
    where = MessageQueue(mine.topic, "broker-a", 0)
    await broker_offsets.reset_queue_offset(scene.client.remoting, scene.address, mine.name, where, 3)
    assert not await broker_offsets.update_offset(scene.client.remoting, scene.address, mine.name, where, 2)
    await mine.answer("reset-offsets", "--to", "latest", "--yes")
    assert (await mine.offsets())[0] == 6


async def test_there_and_back_by_a_snapshot(mine: Group, tmp_path: Path) -> None:
    await mine.fill(10, 7, 3)
    await mine.commit(4, 7, None, 0)
    path = tmp_path / "offsets.json"
    done = await mine.run("snapshot-offsets", "-o", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    content = json.loads(path.read_text())
    assert (content["group"], content["cluster"]) == (mine.name, ["DefaultCluster"])
    assert [entry["offset"] for entry in content["offsets"] if entry["topic"] == mine.topic] == [4, 7, None, 0]
    kept = await mine.run("snapshot-offsets", "-o", str(path))
    assert kept.returncode == 1
    assert "is there already" in kept.stderr
    habit = await mine.run("snapshot-offsets", "-o", "json")  # as every other command has it
    assert json.loads(habit.stdout)["offsets"] == content["offsets"]

    await mine.answer("reset-offsets", "--to", "latest", "--yes")
    assert await mine.offsets() == [10, 7, 3, 0]
    dry = await mine.run("restore-offsets", str(path), "--dry-run")
    assert "6 messages would come again" in dry.stdout
    assert f"left as they are, for nothing was asked of them: {mine.topic}@broker-a/2" in dry.stderr
    assert await mine.offsets() == [10, 7, 3, 0]
    told = await mine.answer("restore-offsets", str(path), "--yes")
    assert (told["written"], told["repeated"]) == (1, 6)
    assert await mine.offsets() == [4, 7, 3, 0]

    # The same through standard input, and by reset-offsets.
    await mine.answer("reset-offsets", "--to", "latest", "--yes")
    piped = await mine.run("restore-offsets", "-", "--yes", stdin=path.read_bytes())
    assert piped.returncode == 0, piped.stderr
    assert await mine.offsets() == [4, 7, 3, 0]
    await mine.answer("reset-offsets", "--to", "latest", "--yes")
    await mine.answer("reset-offsets", "--to", str(path), "--yes")
    assert await mine.offsets() == [4, 7, 3, 0]


async def test_a_snapshot_of_another_group_or_of_other_queues(
    mine: Group, make_group: Callable[..., str], tmp_path: Path
) -> None:
    await mine.fill(10)
    await mine.commit(4, 0, 0, 0)
    path = tmp_path / "offsets.json"
    await mine.run("snapshot-offsets", "-o", str(path))
    content = json.loads(path.read_text())
    content["offsets"][0]["offset"] = 500  # the queue has been shortened since
    content["offsets"].append({"topic": mine.topic, "broker": "broker-z", "queueId": 0, "offset": 5})
    path.write_text(json.dumps(content))
    mine.name = make_group()
    mine.write_manifest()
    refused = await mine.run("restore-offsets", str(path), "--yes")
    assert refused.returncode == 1
    assert "add --force" in refused.stderr
    assert await mine.offsets() == [None] * QUEUES
    forced = await mine.run("restore-offsets", str(path), "--yes", "--force")
    assert forced.returncode == 0, forced.stderr
    assert "500 is outside the queue" in forced.stdout
    assert f"not there now: {mine.topic}@broker-z/0" in forced.stderr
    assert await mine.offsets() == [10, 0, 0, 0]


async def test_a_group_without_an_object_is_looked_after_by_its_name(mine: Group, tmp_path: Path) -> None:
    """No manifest and no cluster: the name server and the group's name are enough."""
    await mine.fill(5, 3, 0, 2)
    await mine.commit(2, 3, 0, 0)
    here = ("--name-server", mine.scene.cluster.name_server)

    async def run(*arguments: str) -> CompletedProcess[str]:
        return await asyncio.to_thread(
            rocketfleet, *arguments, *here, directory=tmp_path, variables={"KUBECONFIG": str(tmp_path / "none")}
        )

    async def told(*arguments: str) -> Any:
        done = await run(*arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert [row["lag"] for row in (await told("lag", mine.name))["queues"]] == [3, 0, 0, 2]
    assert (await told("status", mine.name))["lag"]["lag"] == 5
    assert await told("members", mine.name) == []
    kept = await run("snapshot-offsets", mine.name, "-o", "kept.json")
    assert kept.returncode == 0, kept.stderr
    assert (await told("reset-offsets", mine.name, "--to", "latest", "--yes"))["skipped"] == 5
    assert await mine.offsets() == [5, 3, 0, 2]
    assert (await told("restore-offsets", mine.name, "kept.json", "--yes"))["repeated"] == 5
    assert await mine.offsets() == [2, 3, 0, 0]
    missing = await run("lag", f"{mine.name}-typo")
    assert (missing.returncode, "there is no consumer group" in missing.stderr) == (1, True)
    explained = await run("lag", mine.name, "--explain")
    assert (explained.returncode, "--explain shows what an operator" in explained.stderr) == (2, True)


async def test_a_snapshot_goes_back_by_the_manifest_alone(mine: Group) -> None:
    await mine.fill(4, 0, 0, 0)
    await mine.commit(1, 0, 0, 0)
    await mine.run("snapshot-offsets", "-o", "kept.json")
    await mine.commit(4, 0, 0, 0)
    done = await asyncio.to_thread(
        rocketfleet, "restore-offsets", "kept.json", "--yes", "-f", str(mine.manifest), directory=mine.directory
    )
    assert done.returncode == 0, done.stderr
    assert await mine.offsets() == [1, 0, 0, 0]
