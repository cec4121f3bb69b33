"""Changes of the topic while the group runs."""

import asyncio
import time

from tests.faults.fault import Fault

from rocketfleet.client.errors import GroupNotExist
from rocketfleet.client.requests import broker_offsets, broker_topics
from rocketfleet.testing.history import ChangeName, EventKind
from rocketfleet.wire.bodies import TopicConfig


async def set_topic(fault: Fault, brokers: tuple[str, ...], queues: int, *, writable: int | None = None) -> None:
    """Give the topic so many queues at these brokers."""
    scene = fault.scene
    config = TopicConfig(
        topic_name=scene.topic, read_queue_nums=queues, write_queue_nums=queues if writable is None else writable
    )
    for broker in brokers:
        address = scene.fleet.address_of(await asyncio.to_thread(scene.fleet.master_of, broker))
        await broker_topics.create_topic(scene.client.remoting, address, config)


class TopicGrows(Fault):
    async def apply(self) -> None:
        layout = self.scene.layout
        layout.queues = self.timed.details["queues"]
        await set_topic(self, layout.brokers, layout.queues)
        self.scene.recorder.note(
            EventKind.CHANGE, what=ChangeName.TOPIC_GREW, topic=self.scene.topic, queues=layout.queues
        )


class BrokerAdded(Fault):
    """The topic is made at one more broker, which has run idle until now."""

    async def apply(self) -> None:
        layout = self.scene.layout
        layout.brokers = self.scene.schedule.stage.broker_names[: len(layout.brokers) + 1]
        await set_topic(self, layout.brokers[-1:], layout.queues)
        self.scene.recorder.note(
            EventKind.CHANGE, what=ChangeName.TOPIC_GREW, topic=self.scene.topic, added=layout.brokers[-1]
        )


class QueuesReadOnly(Fault):
    """All but one queue of each broker can only be read for a while, as before a topic is made smaller."""

    name = "queues_read_only"

    async def apply(self) -> None:
        self.note_fault()
        await set_topic(self, self.scene.layout.brokers, self.scene.layout.queues, writable=1)

    async def heal(self) -> None:
        await set_topic(self, self.scene.layout.brokers, self.scene.layout.queues)
        self.note_healed()


class GroupReset(Fault):
    """The group is set to a time, some seconds ago or now, while its members run."""

    async def apply(self) -> None:
        scene, seconds = self.scene, self.timed.details["seconds_back"]
        to = broker_offsets.NOW if not seconds else round((time.time() - seconds) * 1000)
        for broker in scene.layout.brokers:
            address = scene.fleet.address_of(await asyncio.to_thread(scene.fleet.master_of, broker))
            began = time.monotonic()
            try:
                moved = await broker_offsets.reset_offsets(scene.client.remoting, address, scene.group, scene.topic, to)
            except GroupNotExist:
                continue  # no member has been there yet, so there is nothing to move
            for queue, offset in moved.items():
                scene.recorder.note(
                    EventKind.CHANGE, what=ChangeName.RESET, queue=queue, offset=offset, began=round(began, 6)
                )
