"""The blocking producer: from many threads, with callbacks, and clear words once it is closed."""

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.unit.producer.cluster import Cluster, cluster_of, refusing, silent

from rocketfleet.base.loop_thread import LoopThread
from rocketfleet.client.config import TlsConfig
from rocketfleet.client.errors import ResponseError
from rocketfleet.producer import (
    BatchLimits,
    ProducerClosed,
    ProducerOptions,
    SendResult,
    SendStatus,
    SyncProducer,
    TransactionState,
)
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.message import Message, ReceivedMessage
from rocketfleet.wire.queue import MessageQueue


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A scripted cluster in a loop and thread of its own, as a real one would be elsewhere."""
    thread = LoopThread("cluster")
    stack = AsyncExitStack()
    try:
        yield thread.call(stack.enter_async_context(cluster_of("a", "b")))
        thread.call(stack.aclose())
    finally:
        thread.close()


def test_all_ways_to_send(cluster: Cluster) -> None:
    with SyncProducer(cluster.config(), "g") as producer:
        assert producer.send(Message("t", b"x")).status is SendStatus.SEND_OK
        queue = producer.queues("t")[3]
        assert producer.send(Message("t", b"x"), queue=queue).queue == queue
        assert len(producer.send_batch([Message("t", b"x"), Message("t", b"y")])) == 2
        assert producer.send_oneway(Message("t", b"x"))


def test_many_threads_share_one_producer(cluster: Cluster) -> None:
    with SyncProducer(cluster.config(), "g") as producer, ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: producer.send(Message("t", b"%d" % n)), range(400)))
    assert len({result.msg_id for result in results}) == 400
    assert sorted(int(bytes(c.body)) for b in cluster.brokers.values() for c in b.stored) == list(range(400))
    assert sum(len(broker.peer.channels) for broker in cluster.brokers.values()) == 2, "one connection a broker"


def test_small_sends_of_many_threads_travel_together(cluster: Cluster) -> None:
    options = ProducerOptions(batching=BatchLimits(max_delay=0.02))
    with SyncProducer(cluster.config(), "g", options) as producer, ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: producer.send(Message("t", b"%d" % n)), range(160)))
    assert len({result.offset_msg_id for result in results}) == 160
    assert sum(len(broker.stored) for broker in cluster.brokers.values()) < 80


def test_callbacks_hear_of_success_and_failure(cluster: Cluster) -> None:
    heard: list[object] = []
    done = threading.Event()

    def note(future: "Future[SendResult]") -> None:
        heard.append(future.exception() or future.result())
        if len(heard) == 2:
            done.set()

    with SyncProducer(cluster.config(), "g") as producer:
        producer.submit(Message("t", b"x"), note).result(timeout=10)
        cluster["a"].before = cluster["b"].before = refusing(ResponseCode.MESSAGE_ILLEGAL)
        producer.submit(Message("t", b"x"), note)
        assert done.wait(timeout=10)
    assert isinstance(heard[0], SendResult)
    assert isinstance(heard[1], ResponseError)


def test_errors_are_raised_where_the_call_was_made(cluster: Cluster) -> None:
    cluster["a"].before = cluster["b"].before = refusing(ResponseCode.MESSAGE_ILLEGAL)
    with SyncProducer(cluster.config(), "g") as producer, pytest.raises(ResponseError, match="MESSAGE_ILLEGAL"):
        producer.send(Message("t", b"x"))


def test_before_and_after_its_life_it_says_so(cluster: Cluster) -> None:
    producer = SyncProducer(cluster.config(), "g")
    with pytest.raises(ProducerClosed, match="not started"):
        producer.send(Message("t", b"x"))
    producer.start()
    with pytest.raises(ProducerClosed, match="already"):
        producer.start()
    producer.close()
    producer.close()
    with pytest.raises(ProducerClosed, match="closed"):
        producer.send(Message("t", b"x"))
    with pytest.raises(ProducerClosed, match="closed"):
        producer.submit(Message("t", b"x"))
    with pytest.raises(ProducerClosed, match="make a new one"):
        producer.start()


def test_closing_does_not_hang_on_a_silent_broker(cluster: Cluster) -> None:
    cluster["a"].before = cluster["b"].before = silent
    with SyncProducer(cluster.config(), "g", ProducerOptions(send_timeout=60)) as producer:
        stuck = producer.submit(Message("t", b"x"))
    assert stuck.cancelled() or stuck.exception(timeout=10) is not None


def test_waiting_inside_a_callback_is_refused_rather_than_hanging(cluster: Cluster) -> None:
    with SyncProducer(cluster.config(), "g") as producer:
        caught: Future[BaseException] = Future()

        def reenter(_: object) -> None:
            try:
                producer.send(Message("t", b"x"))
            except RuntimeError as error:
                caught.set_result(error)

        producer.submit(Message("t", b"x"), reenter)
        assert "own thread" in str(caught.result(timeout=10))


def test_a_callback_runs_in_the_producers_thread_even_if_the_send_is_over_by_then(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = asyncio.run_coroutine_threadsafe

    def submit_and_wait(work: Any, loop: asyncio.AbstractEventLoop) -> Future[Any]:
        future = submit(work, loop)
        future.exception(timeout=10)
        return future

    with SyncProducer(cluster.config(), "g") as producer:
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submit_and_wait)
        ran_in: Future[threading.Thread] = Future()
        producer.submit(Message("t", b"x"), lambda _: ran_in.set_result(threading.current_thread()))
        assert ran_in.result(timeout=10) is not threading.current_thread()
        monkeypatch.undo()


def test_a_selector_and_transactions_work_from_here_too(cluster: Cluster) -> None:
    class Listener:
        def execute(self, message: Message, argument: object) -> TransactionState:
            return TransactionState.COMMIT

        def check(self, message: ReceivedMessage) -> TransactionState:
            return TransactionState.COMMIT

    with SyncProducer(cluster.config(), "g", transactions=Listener()) as producer:
        chosen = producer.send(Message("t", b"x"), selector=lambda queues, _message, _key: queues[-1]).queue
        assert chosen == MessageQueue("t", "b", 3)
        assert producer.send_in_transaction(Message("t", b"x")).settled


def test_a_start_that_fails_leaves_no_thread_behind(cluster: Cluster) -> None:
    before = threading.active_count()
    producer = SyncProducer(cluster.config(tls=TlsConfig(ca_file="/does/not/exist.pem")), "g")
    with pytest.raises(ValueError, match="certificate authorities"):
        producer.start()
    assert threading.active_count() == before
    with pytest.raises(ProducerClosed):
        producer.send(Message("t", b"x"))


def test_a_forked_child_is_told_to_make_its_own(cluster: Cluster) -> None:
    with SyncProducer(cluster.config(), "g") as producer:
        producer.send(Message("t", b"x"))
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                producer.send(Message("t", b"x"))
            except ProducerClosed as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        words = os.read(reading, 1000)
        os.close(reading)
        assert b"make a producer here" in words
