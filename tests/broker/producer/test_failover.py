"""Two brokers, one killed or frozen under load: nothing acknowledged is lost, sending goes on, and it comes back.

How quickly brokers answer depends on the machine. They are warmed up first, and where slowness is not the subject the
ladder is set so that only failures count.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.broker.cluster import Cluster
from tests.broker.producer.load import Load
from tests.broker.producer.patience import PATIENT
from tests.broker.producer.reading import read_once_there
from tests.support.waiting import until

from rocketfleet.client.config import ClientConfig
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.producer import BatchLimits, Producer, ProducerOptions, RetryPolicy, SendStatus

A, B = "broker-a", "broker-b"
ONLY_FAILURES = ((10.0, 180.0),)
FREEZE = 3.0
FREEZES = ((2.5, 60.0),)  # so long that no busy machine makes an answer as slow as that, and no sound broker rests


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests of this file, mended after each."""
    made = Cluster(tmp_path_factory.mktemp("two"))
    made.start(FleetSpec(brokers=2, properties=PATIENT))
    yield made
    made.stop(delete_data=True, grace=2.0)


@pytest.fixture
async def two(cluster: Cluster) -> AsyncIterator[Cluster]:
    """Two masters that have compiled their code and found their pace."""
    topic = cluster.create_topic(queues=4)
    options = ProducerOptions(send_timeout=30)
    async with (
        Producer(ClientConfig(cluster.name_server), "warm-up", options) as producer,
        Load(producer, topic) as load,
    ):
        await until(lambda: len(load.stored(A)) > 500 and len(load.stored(B)) > 500, "both are warm", within=120)
    yield cluster
    await asyncio.to_thread(cluster.settle)


@pytest.mark.parametrize(
    ("tolerance", "batching"),
    [(False, None), (True, BatchLimits(max_delay=0.005))],
    ids=["plain and single", "tolerant and accumulated"],
)
async def test_a_killed_broker(two: Cluster, tolerance: bool, batching: BatchLimits | None) -> None:
    topic = two.create_topic(queues=4)
    options = ProducerOptions(
        latency_fault_tolerance=tolerance, fault_ladder=ONLY_FAILURES, batching=batching, send_timeout=20
    )
    async with (
        Producer(ClientConfig(two.name_server), "failover", options) as producer,
        Load(producer, topic) as load,
    ):
        await until(lambda: len(load.stored(A)) > 100 and len(load.stored(B)) > 100, "both are used")
        await asyncio.to_thread(two.kill, A)
        dead = len(load.sent)
        await until(lambda: len(load.stored(B, since=dead)) > 300, "sending goes on at the other")
        await asyncio.to_thread(two.restart, A)
        back = len(load.sent)
        await until(lambda: len(load.stored(A, since=back)) > 100, "the broker is used again when it is back")
    assert load.errors == [], "every send found a broker that took it"
    acknowledged = load.stored()
    assert {result.status for result in acknowledged} == {SendStatus.SEND_OK}
    stored = await read_once_there(two.name_server, topic, len(acknowledged))
    places = {(m.msg_id, m.offset_msg_id, m.queue_offset) for m in stored}
    assert {(r.msg_id, r.offset_msg_id, r.queue_offset) for r in acknowledged} <= places, "all are where it was said"


async def test_traffic_turns_away_from_a_slow_broker(two: Cluster) -> None:
    topic = two.create_topic(queues=4)
    options = ProducerOptions(latency_fault_tolerance=True, fault_ladder=FREEZES, send_timeout=30)
    async with (
        Producer(ClientConfig(two.name_server), "slow", options) as producer,
        Load(producer, topic) as load,
    ):
        faults = producer._faults
        assert faults is not None
        await until(lambda: len(load.stored(A)) > 50 and len(load.stored(B)) > 50, "both are used")
        stutter = asyncio.ensure_future(_stutter(two, A))
        try:
            await until(lambda: not faults.is_available(A), "the slow broker is noticed")
            noticed = len(load.sent)
            await until(lambda: len(load.stored(since=noticed)) > 300, "sending goes on")
        finally:
            stutter.cancel()
            await asyncio.gather(stutter, return_exceptions=True)
            two.resume(A)
        assert load.stored(A, since=noticed) == [], "nothing is begun at the slow broker once it is known to be slow"
    assert load.errors == []
    stored = await read_once_there(two.name_server, topic, len(load.stored()))
    assert {result.msg_id for result in load.stored()} <= {message.msg_id for message in stored}


async def _stutter(cluster: Cluster, process: str) -> None:
    """Freeze a process again and again."""
    while True:
        cluster.pause(process)
        await asyncio.sleep(FREEZE)
        cluster.resume(process)
        await asyncio.sleep(0.2)


async def test_without_tolerance_a_slow_broker_keeps_its_share(two: Cluster) -> None:
    """The contrast: what the test above shows is owed to fault tolerance."""
    topic = two.create_topic(queues=4)
    async with (
        Producer(ClientConfig(two.name_server), "slow", ProducerOptions(send_timeout=30)) as producer,
        Load(producer, topic) as load,
    ):
        await until(lambda: len(load.stored(A)) > 50, "it is used")
        stutter = asyncio.ensure_future(_stutter(two, A))
        try:
            await asyncio.sleep(1.5)
            since = len(load.sent)
            await until(lambda: len(load.stored(since=since)) > 200, "sending goes on")
        finally:
            stutter.cancel()
            await asyncio.gather(stutter, return_exceptions=True)
            two.resume(A)
        assert load.stored(A, since=since)


async def test_a_frozen_broker_costs_one_attempt_and_is_used_again_when_it_wakes(two: Cluster) -> None:
    topic = two.create_topic(queues=4)
    options = ProducerOptions(
        latency_fault_tolerance=True,
        fault_ladder=ONLY_FAILURES,
        send_timeout=30,
        retry=RetryPolicy(attempt_timeout=3.0),
        probe_timeout=1.0,
    )
    async with (
        Producer(ClientConfig(two.name_server), "frozen", options) as producer,
        Load(producer, topic) as load,
    ):
        faults = producer._faults
        assert faults is not None
        await until(lambda: len(load.stored(A)) > 50, "it is used")
        two.pause(A)
        await until(lambda: not faults.is_reachable(A), "its silence is noticed")
        frozen = len(load.sent)
        await until(lambda: len(load.stored(B, since=frozen)) > 300, "sending goes on at the other")
        two.resume(A)
        woken = len(load.sent)
        await until(lambda: len(load.stored(A, since=woken)) > 50, "a probe is answered and it is used again")
    assert load.errors == []
