"""Topics and groups on every master of a fleet, made over the wire in milliseconds."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.wire.bodies import PERM_READ, PERM_WRITE
from rocketfleet.wire.codes import RequestCode

_READ_AND_WRITE = PERM_READ | PERM_WRITE


def create_topic(
    fleet: Fleet,
    topic: str,
    queues: int = 8,
    *,
    order: bool = False,
    attributes: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Create (or change) a topic with so many queues on each master, and wait until the name server knows it there.

    Attributes are RocketMQ's, for example {"message.type": "FIFO"}.
    """
    fields: dict[str, Any] = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": queues,
        "writeQueueNums": queues,
        "perm": _READ_AND_WRITE,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": order,
    }
    if attributes:
        fields["attributes"] = ",".join(f"+{name}={value}" for name, value in attributes.items())
    probe, masters, name_server = fleet.probe(), fleet.masters, fleet.name_server
    for address in masters.values():
        probe.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    deadline = clock() + timeout
    while not probe.has_route(name_server, topic, len(masters)):
        if clock() > deadline:
            raise DevBrokerError(f"The name server does not know the topic {topic} after {timeout:g} s.")
        time.sleep(0.01)


def create_group(fleet: Fleet, group: str, **settings: Any) -> None:
    """Create (or change) a consumer group on each master. Settings go by the names of SubscriptionGroupConfig."""
    body = json.dumps({"groupName": group, **settings}).encode()
    probe = fleet.probe()
    for address in fleet.masters.values():
        probe.ask(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
