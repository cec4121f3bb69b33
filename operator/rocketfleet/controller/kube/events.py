"""Events for people, as few as tell the story.

A pass may say the same thing four times per second while it waits, or say it with another number each time. So the same
sentence about the same object or pod is told once in five minutes, and of one reason only so many in a row. An
event that cannot be written is lost; nothing waits for it.
"""

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import API_VERSION, KIND
from rocketfleet.base.timestamps import micro_time
from rocketfleet.controller.kube.api import FIELD_MANAGER, KubeApi, path_of
from rocketfleet.controller.planning.actions import Event
from rocketfleet.controller.reconciling.backend import BackendError

_log = logging.getLogger(__name__)
REPEAT_AFTER_SECONDS = 300.0  # in which a sentence is not repeated
BURST = 20  # events of one reason about one object in a row
REFILL = 15.0  # seconds for one more of them
LONGEST_NOTE = 1000  # bytes; the API takes 1024
MOST_KEPT = 20_000


class EventFilter:
    """Which events are worth telling; pure but for its memory."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str, str, str], float] = OrderedDict()
        self._budget: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def worth(self, uid: str, event: Event, now: float) -> bool:
        """Whether to tell it now. If so, it counts as told."""
        sentence = (uid, event.reason.value, event.message, event.pod_uid)
        last = self._told.get(sentence)
        if last is not None and now < last + REPEAT_AFTER_SECONDS:
            return False
        left, since = self._budget.get(sentence[:2], (float(BURST), now))
        left = min(float(BURST), left + (now - since) / REFILL)
        if left < 1.0:
            return False
        _remember(self._budget, sentence[:2], (left - 1.0, now))
        _remember(self._told, sentence, now)
        return True


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MOST_KEPT:
        memory.popitem(last=False)


class Events:
    """Writes events about groups."""

    def __init__(self, api: KubeApi, instance: str, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._api = api
        self._instance = instance
        self._clock = clock
        self._wall = wall
        self._telling = EventFilter()

    async def emit(self, group: ConsumerGroup, event: Event) -> bool:
        """Tell it, unless that was done lately. Says whether it was told."""
        if not self._telling.worth(group.metadata.uid, event, self._clock()):
            return False
        namespace, name = group.key
        log = _log.warning if event.warning else _log.info
        log("%s/%s: %s: %s", namespace, name, event.reason.value, event.message)
        try:
            manifest = event_manifest(group, event, self._instance, self._wall())
            await self._api.create(path_of("events.k8s.io/v1", "events", namespace), manifest)
        except BackendError as error:
            _log.warning("an event about %s/%s could not be written: %s", namespace, name, error)
        return True


def event_manifest(group: ConsumerGroup, event: Event, instance: str, wall: float) -> dict[str, Any]:
    """The event as an object."""
    namespace, name = group.key
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name[:200]}.{secrets.token_hex(8)}", "namespace": namespace},
        "eventTime": micro_time(wall),
        "reportingController": f"{FIELD_MANAGER}.io/operator",
        "reportingInstance": instance[:128],
        "action": "Reconcile",
        "reason": event.reason.value,
        "type": "Warning" if event.warning else "Normal",
        "note": event.message.encode()[:LONGEST_NOTE].decode(errors="ignore"),
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": namespace,
            "name": name,
            "uid": group.metadata.uid,
        },
    }
