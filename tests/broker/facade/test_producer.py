"""What the facade does better than the original, or has from 2.0.0, on a real broker."""

import threading
from collections.abc import Callable, Iterator

import pytest
from tests.broker.cluster import Cluster
from tests.broker.facade.reading import messages_of

from rocketfleet.facade.client import Message, Producer, SendResult, SendStatus
from rocketfleet.facade.exceptions import ProducerSendAsyncFailed, ProducerSendOrderlyFailed, ProducerSendSyncFailed
from rocketfleet.producer.queues.sharding import java_hash


def message(topic: str, body: str | bytes) -> Message:
    made = Message(topic)
    made.set_body(body)
    return made


@pytest.fixture
def producer(broker: Cluster) -> Iterator[Producer]:
    producer = Producer("facade", timeout=10_000)
    producer.set_name_server_address(broker.name_server)
    with producer as entered:
        assert entered is producer
        yield producer


def test_a_body_with_a_nul_arrives_whole(producer: Producer, broker: Cluster, topic: str) -> None:
    body = b"before\0after\0" + bytes(range(256))
    assert producer.send_sync(message(topic, body)).status == SendStatus.OK
    assert [received.body for received in messages_of(broker.name_server, topic)] == [body]


def test_a_batch_is_as_many_messages_in_one_queue(producer: Producer, broker: Cluster, topic: str) -> None:
    result = producer.send_batch([message(topic, f"batched {i}") for i in range(5)])
    received = messages_of(broker.name_server, topic)
    assert [one.body for one in received] == [b"batched %d" % i for i in range(5)]
    assert len({one.queue_id for one in received}) == 1
    assert result.msg_id.split(",") == [one.msg_id for one in received]
    assert (result.status, result.offset) == (SendStatus.OK, 0)


def test_an_empty_batch_and_two_topics_in_one_are_refused(producer: Producer, topic: str) -> None:
    with pytest.raises(ProducerSendSyncFailed, match="empty"):
        producer.send_batch([])
    with pytest.raises(ProducerSendSyncFailed, match="one topic"):
        producer.send_batch([message(topic, "a"), message(f"{topic}-other", "b")])


def test_messages_with_one_sharding_key_stay_in_order_where_java_would_put_them(
    producer: Producer, broker: Cluster, topic: str
) -> None:
    keys = ["order-1", "order-2", "order-3", "订单"]
    for i in range(20):
        for key in keys:
            result = producer.send_orderly_with_sharding_key(message(topic, f"{key}/{i}"), key)
            assert result.status == SendStatus.OK
    received = messages_of(broker.name_server, topic)
    for key in keys:
        mine = [one for one in received if one.body.decode().startswith(f"{key}/")]
        assert {one.queue_id for one in mine} == {abs(java_hash(key)) % 8}
        assert [one.body.decode() for one in mine] == [f"{key}/{i}" for i in range(20)]


def test_a_broken_selector_reaches_the_caller(producer: Producer, topic: str) -> None:
    with pytest.raises(ZeroDivisionError):
        producer.send_orderly(message(topic, "x"), 1, queue_selector=lambda count, msg, arg: 1 // 0)
    with pytest.raises(ProducerSendOrderlyFailed, match="returned 8"):
        producer.send_orderly(message(topic, "x"), 1, queue_selector=lambda count, msg, arg: 8)


def test_a_property_that_would_change_on_its_way_is_refused(producer: Producer, topic: str) -> None:
    torn = message(topic, "x")
    torn.set_property("name", "one\x02two")
    with pytest.raises(ProducerSendSyncFailed, match="separates properties"):
        producer.send_sync(torn)


def test_a_success_callback_may_send(producer: Producer, broker: Cluster, topic: str) -> None:
    done = threading.Event()

    def again(_: object) -> None:
        producer.send_sync(message(topic, "second"))
        done.set()

    producer.send_async(message(topic, "first"), again, None)
    assert done.wait(60)
    assert {one.body for one in messages_of(broker.name_server, topic)} == {b"first", b"second"}


def test_a_shutdown_leaves_no_message_without_its_callback(broker: Cluster, topic: str) -> None:
    producer = Producer("facade-callbacks")
    producer.set_name_server_address(broker.name_server)
    producer.start()
    called: list[object] = []
    for i in range(50):
        producer.send_async(message(topic, f"{i}"), called.append, called.append)
    producer.shutdown()
    assert len(called) == 50
    sent = [result for result in called if isinstance(result, SendResult)]
    cut_off = [error for error in called if isinstance(error, ProducerSendAsyncFailed)]
    assert len(sent) + len(cut_off) == 50
    assert len(messages_of(broker.name_server, topic)) >= len(sent)


def test_credentials_are_used_and_never_shown(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(acl=True)
    topic = cluster.create_topic()
    admin = cluster.admin_user
    assert admin is not None
    right = Producer("facade-acl", timeout=10_000)
    right.set_name_server_address(cluster.name_server)
    right.set_session_credentials(admin.access_key, admin.secret_key, "ALIYUN")
    with right:
        assert right.send_sync(message(topic, "signed")).status == SendStatus.OK
    wrong = Producer("facade-acl", timeout=10_000)
    wrong.set_name_server_address(cluster.name_server)
    wrong.set_session_credentials(admin.access_key, "not-the-secret", "ALIYUN")
    with wrong, pytest.raises(ProducerSendSyncFailed) as raised:
        wrong.send_sync(message(topic, "forged"))
    assert "not-the-secret" not in str(raised.value)
    assert admin.secret_key not in str(raised.value)
