"""Ten thousand samples while messages come and go: no offset beyond its end, no lag below nothing."""

import asyncio
import random
from collections.abc import Callable

import pytest
from tests.broker.consumer.scene import Got
from tests.broker.lag.watching import Watch

from rocketfleet.lag.collecting import broker_reading
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import Message

SAMPLES = 10_000
Topics = Callable[..., str]


@pytest.mark.parametrize("bulk", [False, True], ids=["a call per queue", "all offsets in one call"])
async def test_lag_is_never_negative(
    watch: Watch, make_topic: Topics, make_group: Topics, monkeypatch: pytest.MonkeyPatch, bulk: bool
) -> None:
    if bulk:
        monkeypatch.setattr(broker_reading, "prefers_bulk", lambda *_: True)
    topic, groups = make_topic(queues=8), [make_group() for _ in range(3)]
    for group in groups:
        watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
        await watch.member(group, topic, Got(), persist_interval=0.01)
    number = random.Random(7)

    async def produce() -> None:
        while True:
            batch = [Message(topic, b"x") for _ in range(number.randint(1, 50))]
            await watch.producer.send_batch(batch)

    traffic = asyncio.create_task(produce())
    samples = lagging = 0
    try:
        while samples < SAMPLES // 2:  # the other half is the other way's
            await watch.monitor.sweep()
            for group in groups:
                seen = watch.monitor.latest(group)
                assert seen is not None
                for row in seen.queues:
                    if row.consumer_offset is None or row.max_offset is None:
                        continue
                    samples += 1
                    assert row.consumer_offset <= row.max_offset, "the end was read before the offset"
                    assert row.lag == row.max_offset - row.consumer_offset
                    assert row.seconds is None or row.seconds >= 0
                    lagging += row.lag > 0
    finally:
        traffic.cancel()
        await asyncio.gather(traffic, return_exceptions=True)
    assert lagging, "there was no traffic to speak of"
