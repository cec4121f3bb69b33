"""The facade against the original: the same program on both, the same broker, and what comes of it compared.

The original is `rocketmq` 0.4.4, the last wheel that carries its native library. It logs below $HOME, so it gets one.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.facade.reading import messages_of, wait_for_messages
from tests.broker.facade.sample_reader_getters import look_at

from rocketfleet.facade.client import ReceivedMessage

HERE = Path(__file__).parent
ORIGINAL, OURS = "rocketmq", "rocketfleet.facade"
SENT = 57
"""How many messages the sample sends to its topic."""


def run(home: Path, program: str, *arguments: str) -> Any:
    """A sample program's JSON."""
    answer = subprocess.run(
        [sys.executable, str(HERE / program), *arguments],
        env={**os.environ, "HOME": str(home), "PYTHONPATH": str(HERE.parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def arrived(broker: Cluster, topic: str) -> None:
    wait_for_messages(broker.name_server, topic, lambda messages: len(messages) >= SENT)


@pytest.fixture(scope="module")
def both(broker: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the sample saw, and where it sent to, by package."""
    seen = {}
    home = tmp_path_factory.mktemp("home")
    for package in (ORIGINAL, OURS):
        topic = broker.create_topic(queues=8)
        seen[package] = (run(home, "sample_producer.py", package, broker.name_server, topic), topic)
        arrived(broker, topic)
    return seen


def test_the_sample_sees_the_same_and_the_broker_gets_the_same(
    both: dict[str, Any], broker: Cluster, group: str, tmp_path: Path
) -> None:
    (their_view, their_topic), (our_view, our_topic) = both[ORIGINAL], both[OURS]
    assert our_view == their_view
    assert our_view["no body"] == ["ProducerSendSyncFailed", "ProducerException", "RocketMQException"]

    # Both topics read by the original's consumer: what its users get.
    theirs, ours = (
        run(tmp_path, "sample_reader.py", broker.name_server, topic, group) for topic in (their_topic, our_topic)
    )
    assert len(ours) == SENT
    assert Counter(map(content, ours)) == Counter(map(content, theirs))
    assert in_order(ours) == in_order(theirs)
    assert by_thread(ours) == by_thread(theirs)
    assert [message["delay_time_level"] for message in ours if "delayed" in message["body"]] == [1]


def content(message: dict[str, Any]) -> str:
    """What of a message is the sender's."""
    own = {name: message[name] for name in ("tags", "keys", "body", "bytes", "delay_time_level", "reconsume_times")}
    properties = {name: value for name, value in message["properties"].items() if name != "UNIQ_KEY"}
    return json.dumps([own, properties], sort_keys=True)


def in_order(messages: list[dict[str, Any]]) -> dict[int, list[str]]:
    """What a queue selector decided: queue → bodies in their order."""
    queues: dict[int, list[str]] = {}
    for message in sorted(messages, key=lambda message: (message["queue_id"], message["queue_offset"])):
        if "order" in message["body"] or "queue" in message["body"]:
            queues.setdefault(message["queue_id"], []).append(message["body"])
    assert sum(map(len, queues.values())) == 23
    return queues


def by_thread(messages: list[dict[str, Any]]) -> set[str]:
    return {message["body"] for message in messages if "thread" in message["body"]}


def test_a_received_message_reads_as_in_the_original(
    both: dict[str, Any], broker: Cluster, group: str, tmp_path: Path
) -> None:
    for _, topic in both.values():
        theirs = run(tmp_path, "sample_reader.py", broker.name_server, topic, group)
        ours = [look_at(ReceivedMessage(message)) for message in messages_of(broker.name_server, topic)]
        key = "commit_log_offset"
        assert sorted(ours, key=lambda message: message[key]) == sorted(theirs, key=lambda message: message[key])


def test_without_a_name_server_both_say_so_when_they_send(tmp_path: Path) -> None:
    theirs, ours = (
        run(tmp_path, "sample_producer.py", package, "127.0.0.1:1", "orders", "lost") for package in (ORIGINAL, OURS)
    )
    assert ours == theirs == {"no name server": ["ProducerSendSyncFailed", "ProducerException", "RocketMQException"]}


def test_where_topics_are_not_created_by_themselves_an_absent_one_is_an_error_in_both(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(auto_create_topics=False)
    seen = []
    for package in (ORIGINAL, OURS):
        topic = cluster.create_topic(queues=8)
        seen.append(run(tmp_path, "sample_producer.py", package, cluster.name_server, topic))
    assert seen[0] == seen[1]
    assert seen[1]["topic that is not there"] == ["ProducerSendSyncFailed", "ProducerException", "RocketMQException"]
