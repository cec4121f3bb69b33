"""`PushConsumer` on the broker: the same program on the original and on ours, and what only ours does."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.support.waiting import wait_until

from rocketfleet.facade.client import ConsumeStatus, Message, MessageModel, Producer, PushConsumer, ReceivedMessage
from rocketfleet.facade.exceptions import PushConsumerStartFailed

SAMPLE = Path(__file__).parent / "sample_push_consumer.py"


@pytest.mark.parametrize("orderly", [False, True])
def test_both_clients_give_the_same_results(broker: Cluster, tmp_path: Path, *, orderly: bool) -> None:
    seen = []
    for package in ("rocketmq", "rocketfleet.facade"):
        topic, group = broker.create_topic(queues=2), broker.create_group()
        answer = subprocess.run(
            [sys.executable, str(SAMPLE), package, broker.name_server, topic, group, str(orderly)],
            env={**os.environ, "HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
            check=True,
        )
        lines = [line for line in answer.stdout.splitlines() if line.startswith("{")]
        seen.append(json.loads(lines[-1]))
    assert seen[0] == seen[1]
    assert seen[1]["bodies"] == sorted(f"body-{n}" for n in range(20))


def test_a_callback_belongs_to_its_topic(broker: Cluster) -> None:
    first, second, group = broker.create_topic(), broker.create_topic(), broker.create_group()
    producer = Producer("facade-push")
    producer.set_name_server_address(broker.name_server)
    producer.start()
    got: dict[str, list[bytes]] = {first: [], second: []}
    consumer = PushConsumer(group)
    consumer.set_name_server_address(broker.name_server)
    consumer.subscribe(first, lambda message: got[first].append(message.body))
    consumer.subscribe(second, lambda message: got[second].append(message.body))
    with consumer:
        for topic in (first, second):
            message = Message(topic)
            message.set_body(topic)
            producer.send_sync(message)
        wait_until(lambda: all(got.values()), "both callbacks are called")
    producer.shutdown()
    assert got == {first: [first.encode()], second: [second.encode()]}


def test_a_message_that_is_put_off_comes_again(broker: Cluster) -> None:
    topic, group = broker.create_topic(queues=1), broker.create_group()
    times: list[int] = []

    def put_off_once(message: ReceivedMessage) -> ConsumeStatus:
        times.append(message.reconsume_times)
        return ConsumeStatus.CONSUME_SUCCESS if message.reconsume_times else ConsumeStatus.RECONSUME_LATER

    producer, consumer = Producer("facade-push"), PushConsumer(group)
    for client in (producer, consumer):
        client.set_name_server_address(broker.name_server)
    consumer.subscribe(topic, put_off_once)
    with producer, consumer:
        message = Message(topic)
        message.set_body("once more")
        producer.send_sync(message)
        wait_until(lambda: times == [0, 1], "it comes a second time")


def test_broadcasting_goes_on_where_it_was(broker: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an instance name, as most programs are: the client id is another one at each start."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("POD_NAME", raising=False)
    topic, group = broker.create_topic(queues=2), broker.create_group()
    got: list[bytes] = []

    def send(*bodies: str) -> None:
        for body in bodies:
            message = Message(topic)
            message.set_body(body)
            producer.send_sync(message)

    def has(count: int) -> bool:
        return len(got) >= count

    producer = Producer("facade-push")
    producer.set_name_server_address(broker.name_server)
    with producer:
        send("before", "before")
        for start, wanted in enumerate((1, 3, 5)):
            consumer = PushConsumer(group, message_model=MessageModel.BROADCASTING)
            consumer.set_name_server_address(broker.name_server)
            consumer.subscribe(topic, lambda message: got.append(message.body))
            with consumer:
                send(f"{start} there")
                wait_until(functools.partial(has, wanted), "what came while it was there, and while not")
            send(f"{start} away")
    assert sorted(got) == [b"0 away", b"0 there", b"1 away", b"1 there", b"2 there"]


def test_without_a_subscription_it_does_not_start() -> None:
    consumer = PushConsumer("g")
    consumer.set_name_server_address("127.0.0.1:1")
    with pytest.raises(PushConsumerStartFailed, match="nothing is subscribed"):
        consumer.start()
