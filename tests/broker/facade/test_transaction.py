"""Transactions through the facade, on a broker that asks for open outcomes every second.

0.4.4 has no transactions and 2.0.0 no library, so there is nothing to compare with: the broker is the judge.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.facade.reading import messages_of, wait_for_messages

from rocketfleet.facade.client import Message, ReceivedMessage, SendStatus, TransactionMQProducer, TransactionStatus


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    from rocketfleet.devbroker.setup.config import FleetSpec

    cluster = Cluster(tmp_path_factory.mktemp("transactions"))
    cluster.start(FleetSpec(properties=(("transactionCheckInterval", "1000"), ("transactionTimeOut", "1000"))))
    try:
        yield cluster
    finally:
        cluster.stop(delete_data=True, grace=2.0)


class Ledger:
    """What became of local transactions, as a database would know it, and who asked."""

    def __init__(self) -> None:
        self.outcomes: dict[str, TransactionStatus] = {}
        self.checked: list[tuple[str, bytes, bytes]] = []
        self.asked = threading.Event()

    def check(self, message: ReceivedMessage) -> TransactionStatus:
        self.checked.append((message.id, message.body, message.get_property("shop")))
        self.asked.set()
        return self.outcomes.get(message.id, TransactionStatus.UNKNOWN)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return cluster.create_topic()


@pytest.fixture
def producer(cluster: Cluster, ledger: Ledger, topic: str) -> Iterator[TransactionMQProducer]:
    producer = TransactionMQProducer(f"tx-{topic}", ledger.check, timeout=10_000)
    producer.set_name_server_address(cluster.name_server)
    with producer:
        yield producer


def message(topic: str, body: str) -> Message:
    made = Message(topic)
    made.set_body(body)
    made.set_tags("tx")
    made.set_property("shop", "bonn")
    return made


def answering(status: TransactionStatus) -> Callable[[ReceivedMessage, Any], TransactionStatus]:
    return lambda message, arguments: status


def bodies(cluster: Cluster, topic: str) -> list[bytes]:
    return [received.body for received in messages_of(cluster.name_server, topic)]


def test_commit_shows_and_rollback_hides(producer: TransactionMQProducer, cluster: Cluster, topic: str) -> None:
    for i in range(3):
        dropped = producer.send_message_in_transaction(
            message(topic, f"dropped {i}"), answering(TransactionStatus.ROLLBACK)
        )
        kept = producer.send_message_in_transaction(message(topic, f"kept {i}"), answering(TransactionStatus.COMMIT))
        assert dropped.status == kept.status == SendStatus.OK
    received = wait_for_messages(cluster.name_server, topic, lambda found: len(found) >= 3)
    assert {one.body for one in received} == {b"kept 0", b"kept 1", b"kept 2"}
    assert {(one.tags, one.properties["shop"]) for one in received} == {("tx", "bonn")}
    assert kept.msg_id in {one.msg_id for one in received}


def test_the_local_transaction_runs_in_the_sending_thread(producer: TransactionMQProducer, topic: str) -> None:
    seen: list[Any] = []

    def execute(half: ReceivedMessage, arguments: Any) -> TransactionStatus:
        seen.extend([threading.current_thread(), half.topic, half.body, half.tags, half.id, arguments])
        return TransactionStatus.ROLLBACK

    session = object()
    result = producer.send_message_in_transaction(message(topic, "mine"), execute, session)
    assert seen == [threading.current_thread(), topic, b"mine", b"tx", result.msg_id, session]


def test_an_open_outcome_is_asked_for(
    producer: TransactionMQProducer, ledger: Ledger, cluster: Cluster, topic: str
) -> None:
    result = producer.send_message_in_transaction(message(topic, "later"), answering(TransactionStatus.UNKNOWN))
    assert bodies(cluster, topic) == []
    assert ledger.asked.wait(60)
    ledger.outcomes[result.msg_id] = TransactionStatus.COMMIT
    received = wait_for_messages(cluster.name_server, topic, lambda found: len(found) >= 1)
    assert [one.body for one in received] == [b"later"]
    assert set(ledger.checked) == {(result.msg_id, b"later", b"bonn")}


def test_an_exception_reaches_the_caller_and_commits_nothing(
    producer: TransactionMQProducer, ledger: Ledger, cluster: Cluster, topic: str
) -> None:
    def execute(half: ReceivedMessage, arguments: Any) -> TransactionStatus:
        raise ConnectionResetError("the database is gone")

    with pytest.raises(ConnectionResetError, match="the database is gone"):
        producer.send_message_in_transaction(message(topic, "unsure"), execute)
    assert ledger.asked.wait(60)  # so the broker holds the outcome to be open
    assert bodies(cluster, topic) == []


def test_threads_have_their_own_transactions(producer: TransactionMQProducer, cluster: Cluster, topic: str) -> None:
    wrong: list[Any] = []

    def send(name: int) -> None:
        def execute(half: ReceivedMessage, arguments: Any) -> TransactionStatus:
            if (threading.current_thread().name, half.body) != (str(name), f"{name}/{arguments}".encode()):
                wrong.append((threading.current_thread().name, half.body))
            return TransactionStatus.COMMIT if arguments % 2 else TransactionStatus.ROLLBACK

        for i in range(6):
            producer.send_message_in_transaction(message(topic, f"{name}/{i}"), execute, i)

    threads = [threading.Thread(target=send, args=(name,), name=str(name)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    received = wait_for_messages(cluster.name_server, topic, lambda found: len(found) >= 24)
    assert sorted(one.body for one in received) == sorted(f"{n}/{i}".encode() for n in range(8) for i in (1, 3, 5))
