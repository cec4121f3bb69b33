"""History in a topic of a real broker."""

import json
from collections.abc import Callable

from tests.broker.lag.watching import Watch

from rocketfleet.lag.collecting.monitor import LagMonitor
from rocketfleet.lag.samples.history import SampleKeeper
from rocketfleet.lag.samples.topic_sink import TAG, TopicSink


async def test_what_was_seen_can_be_read_from_the_topic(
    watch: Watch, make_topic: Callable[..., str], group: str
) -> None:
    topic, kept = make_topic(queues=2), make_topic(queues=1)
    await watch.send(topic, 1, 2, 3, queue=0)
    await watch.commit(group, topic, 1)
    watch.monitor = LagMonitor(keeper=SampleKeeper(TopicSink(watch.producer, kept)))
    watch.follow(group, topic)
    seen = await watch.look(group)
    (message,) = await watch.found(kept, 1)
    assert message.tags == TAG
    lines = [json.loads(line) for line in message.body.splitlines()]
    assert [(line["queue"], line["max_offset"], line["consumer_offset"], line["lag"]) for line in lines] == [
        (0, 3, 1, 2), (1, 0, None, 0)
    ]  # fmt: skip
    assert {line["time"] for line in lines} == {round(row.observed_at * 1000) for row in seen.queues}
    assert {(line["cluster"], line["group"], line["topic"]) for line in lines} == {("test", group, topic)}
