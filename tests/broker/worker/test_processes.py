"""Several processes under one parent."""

import asyncio
import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from tests.broker.worker.conftest import Offset, Send, Start
from tests.broker.worker.worker_process import WorkerProcess
from tests.support.waiting import wait_until

from rocketfleet.wire.queue import MessageQueue


def bodies(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]


def children(worker: WorkerProcess) -> list[int]:
    """The pids of the parent's children."""
    listed = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def owners(worker: WorkerProcess, topic: str) -> Counter[str]:
    queues: list[dict[str, Any]] = worker.json("/assignment")["queues"]
    return Counter(queue["clientId"] for queue in queues if queue["topic"] == topic and queue["state"] == "Owned")


async def test_two_processes_are_two_members_behind_one_port(
    start_worker: Start, send: Send, offset_at_broker: Offset, topic: str, group: str
) -> None:
    await send(topic, bodies(400))
    worker = start_worker("handle", "--processes", "2", "--client-id", "pod")
    worker.until_ready()
    wait_until(lambda: owners(worker, topic) == {"pod#0": 4, "pod#1": 4}, "each has its half")
    worker.until_handled(bodies(400))
    assert worker.ask("/healthz", token=None) == (200, "ok\n")
    assignment = worker.json("/assignment")
    assert (assignment["phase"], assignment["ready"]) == ("Running", True)
    assert assignment["members"] == assignment["clientIds"] == ["pod#0", "pod#1"]
    rebalanced = await asyncio.to_thread(worker.json, "/rebalance", "POST")
    assert rebalanced["clientIds"] == ["pod#0", "pod#1"]
    metrics = worker.ask("/metrics", token=None)[1]
    handled = re.findall(r'rocketfleet_worker_messages_handled_total\{group="[^"]+",process="(\d)"\} (\S+)', metrics)
    assert {process for process, _ in handled} == {"0", "1"}
    assert sum(float(count) for _, count in handled) == 400.0
    assert {line.get("process") for line in worker.log} == {None, 0, 1}

    answer = await asyncio.to_thread(worker.json, "/drain", "POST")
    assert answer["confirmed"] is True
    assert sum(queue["offset"] for queue in answer["queues"] if queue["topic"] == topic) == 400
    for entry in answer["queues"]:
        queue = MessageQueue(entry["topic"], entry["broker"], entry["queueId"])
        assert await offset_at_broker(group, queue) == entry["offset"]
    assert worker.wait() == 0
    assert Counter(worker.handled) == Counter(bodies(400))


async def test_a_process_that_dies_is_started_again(start_worker: Start, send: Send, topic: str) -> None:
    worker = start_worker("handle", "--processes", "2", "--client-id", "pod")
    worker.until_ready()
    wait_until(lambda: owners(worker, topic) == {"pod#0": 4, "pod#1": 4}, "each has its half")
    before = children(worker)
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(children(worker)) == 2 and children(worker) != before, "it is started again")
    worker.until_ready()
    wait_until(lambda: owners(worker, topic) == {"pod#0": 4, "pod#1": 4}, "each has its half again")
    await send(topic, bodies(80))
    wait_until(lambda: set(worker.handled) == set(bodies(80)), "all messages are handled")
    worker.signal()
    assert worker.wait() == 0


async def test_processes_do_not_outlive_their_parent(start_worker: Start, topic: str) -> None:
    worker = start_worker("handle", "--processes", "2")
    worker.until_ready()
    orphans = children(worker)
    assert len(orphans) == 2
    worker.signal(signal.SIGKILL)
    worker.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in orphans), "they have drained and ended")
    assert worker.log_text.count("the parent process is gone") == 2
    assert worker.log_text.count("drained in") == 2


async def test_a_signal_to_the_parent_drains_all(start_worker: Start, send: Send, topic: str) -> None:
    worker = start_worker("slowly", "--processes", "2")
    worker.until_ready()
    sending = asyncio.create_task(send(topic, bodies(300)))
    await asyncio.to_thread(wait_until, lambda: len(worker.handled) > 50, "it is at work")
    worker.signal()
    assert await asyncio.to_thread(worker.wait) == 0
    await sending
    successor = start_worker("slowly")
    await asyncio.to_thread(successor.until_handled, bodies(300))
    successor.signal()
    assert successor.wait() == 0
    assert Counter(successor.handled) == Counter(bodies(300))


async def test_the_first_signal_to_the_parent_after_a_call_to_drain_does_not_hurry(
    start_worker: Start, send: Send, topic: str
) -> None:
    worker = start_worker("hold", "--processes", "2", "--drain-timeout", "3600")
    worker.until_ready()
    wait_until(lambda: sorted(owners(worker, topic).values()) == [4, 4], "each has its half")
    worker.hold_file.touch()
    await send(topic, bodies(8))
    wait_until(lambda: len(worker.handled) == 8, "handlers have the messages")
    draining = asyncio.create_task(asyncio.to_thread(worker.json, "/drain", "POST"))
    await asyncio.to_thread(wait_until, lambda: worker.json("/assignment")["phase"] == "Draining", "draining")
    worker.signal()
    # Once by the parent, and once by each of its processes.
    await asyncio.to_thread(wait_until, lambda: worker.log_text.count("asked to stop") == 3, "the signal is passed on")
    worker.hold_file.unlink()
    answer = await draining
    assert sum(queue["unfinished"] for queue in answer["queues"]) == 0
    assert sum(queue["offset"] for queue in answer["queues"] if queue["topic"] == topic) == 8
    assert worker.wait() == 0


def test_wrong_settings_of_a_child_end_the_parent(start_worker: Start) -> None:
    worker = start_worker("no_such_function", "--processes", "2")
    assert worker.wait() == 2
    assert "has no 'no_such_function'" in worker.log_text
