"""The programs of docs/consumer.md, as a reader starts and ends them: a message is printed, Ctrl-C drains."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.broker.consumer.scene import Scene

PAGE = (Path(__file__).parents[3] / "docs" / "consumer.md").read_text()
HELLO, WITH_A_LOOP = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
Topics = Callable[..., str]


@asynccontextmanager
async def started(program: str, scene: Scene, topic: str, group: str) -> AsyncIterator[Process]:
    """A program of the page, with its topic and its group replaced by those of the test."""
    program = program.replace("127.0.0.1:9876", scene.cluster.name_server)
    program, topics = re.subn(r'Subscription\("orders"', f'Subscription("{topic}"', program)
    program, groups = re.subn(r'group="\w+"', f'group="{group}"', program)
    assert (topics, groups) == (1, 1)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-u", "-c", program, stdout=PIPE, stderr=PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def first_line(process: Process, scene: Scene, topic: str) -> str:
    """What it prints of the first message it gets: a group begins when its member does, so messages come until then."""

    async def send() -> None:
        while True:
            await scene.send(topic, "hello", tags="paid", keys="order-7")
            await asyncio.sleep(0.2)

    sending = asyncio.create_task(send())
    assert process.stdout is not None
    try:
        return (await asyncio.wait_for(process.stdout.readline(), 60.0)).decode()
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def ended(process: Process) -> tuple[int | None, str]:
    _, said = await asyncio.wait_for(process.communicate(), 60.0)
    return process.returncode, said.decode()


async def settled(scene: Scene, topic: str, group: str) -> None:
    """It has left the group and given back its queue with everything that was sent, handled."""
    assert await scene.ids(group) == ()
    sent = len(await scene.found(topic, 1))
    assert await scene.committed(group, topic) in range(1, sent + 1)


def test_hello_world_has_five_lines_at_most() -> None:
    assert len(HELLO.splitlines()) <= 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_hello_world(scene: Scene, make_topic: Topics, group: str, number: signal.Signals) -> None:
    topic = make_topic(queues=1)
    async with started(HELLO, scene, topic, group) as process:
        assert await first_line(process, scene, topic) == "b'hello'\n"
        process.send_signal(number)
        code, said = await ended(process)
        assert (code, "Traceback" in said) == (0, False), said
    await settled(scene, topic, group)


async def test_a_second_signal_does_not_wait_for_handlers(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    slow = "(print('begun'), __import__('time').sleep(600))"
    program = HELLO.replace("print(message.body)", slow).replace("),)", "),), drain_timeout=3600.0")
    assert program.count("drain_timeout") == program.count("sleep") == 1
    async with started(program, scene, topic, group) as process:
        assert await first_line(process, scene, topic) == "begun\n"
        process.send_signal(signal.SIGINT)
        await asyncio.sleep(1.0)
        assert process.returncode is None
        process.send_signal(signal.SIGINT)
        code, said = await ended(process)
        assert code == 0, said
    assert await scene.ids(group) == ()


async def test_a_consumer_in_a_program_with_an_event_loop(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    async with started(WITH_A_LOOP, scene, topic, group) as process:
        assert await first_line(process, scene, topic) == "('order-7',) b'hello'\n"
        process.send_signal(signal.SIGINT)
        code, said = await ended(process)
        assert said.rstrip().endswith("KeyboardInterrupt"), said
        assert code == -signal.SIGINT
    await settled(scene, topic, group)


async def test_a_topic_that_does_not_exist_is_said(scene: Scene, group: str) -> None:
    async with started(HELLO, scene, "nobody-made-this", group) as process:
        code, said = await ended(process)
    assert code == 1
    assert "NoRoute: no route to topic nobody-made-this" in said
