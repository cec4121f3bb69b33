"""Settings by their keys, put together into what the consumer takes: `ConsumerSettings` and a strategy.

Only what was given is passed on, so that the defaults stand in one place, at the consumer.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rocketfleet.allocation.machine_room_nearby import room_before
from rocketfleet.allocation.request import AllocationError
from rocketfleet.allocation.strategies import Parameters, Strategy, build
from rocketfleet.consumer.flow import Limits, TopicLimits
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings, Handover, InitialOffset
from rocketfleet.wire.bodies import ConsumeFromWhere, MessageModel
from rocketfleet.worker.setting_table import BY_KEY
from rocketfleet.worker.setting_values import SettingsError, moment
from rocketfleet.worker.settings_file import Values, flatten

if TYPE_CHECKING:
    from rocketfleet.wire.queue import MessageQueue

_MODELS = {"Clustering": MessageModel.CLUSTERING, "Broadcasting": MessageModel.BROADCASTING}
_BEGINNINGS = {
    "LastOffset": ConsumeFromWhere.LAST_OFFSET,
    "FirstOffset": ConsumeFromWhere.FIRST_OFFSET,
    "Timestamp": ConsumeFromWhere.TIMESTAMP,
}
# Key in the table → field of ConsumerSettings, where the value is taken as it is.
_PLAIN = {
    "consume.batchSize": "consume_message_batch_max_size",
    "consume.consumeTimeoutSeconds": "consume_timeout",
    "consume.maxReconsumeTimes": "max_reconsume_times",
    "consume.suspendSeconds": "suspend_current_queue_time",
    "consume.autoCommit": "auto_commit",
    "consume.pullBatchSize": "pull_batch_size",
    "consume.pullIntervalSeconds": "pull_interval",
    "consume.persistIntervalSeconds": "persist_interval",
    "rebalance.handoverTimeoutSeconds": "handover_timeout",
    "rebalance.intervalSeconds": "rebalance_interval",
    "rebalance.lockIntervalSeconds": "lock_interval",
    "rebalance.heartbeatSeconds": "heartbeat_interval",
    "shutdown.drainTimeoutSeconds": "drain_timeout",
}
_LIMITS = {"consume.queueThreshold": "count", "consume.queueThresholdMiB": "size_mib", "consume.maxSpan": "span"}
_TOPIC_LIMITS = {"consume.topicThreshold": "count", "consume.topicThresholdMiB": "size_mib"}
_ROOM_SEPARATOR = "@"  # that of MachineRoom's broker names


def consumer_settings(values: Mapping[str, Any]) -> ConsumerSettings:
    """What the values say about consuming. The first thing that is wrong is a SettingsError."""
    if "groupName" not in values:
        raise SettingsError("no consumer group is named: give --group, ROCKETFLEET_GROUP, or groupName in the settings")
    if not values.get("subscriptions"):
        raise SettingsError(
            "no topic is named: give --topic, ROCKETFLEET_TOPICS, or subscriptions in the settings file"
        )
    given: dict[str, Any] = {"group": values["groupName"], "subscriptions": tuple(values["subscriptions"])}
    given |= {field: values[key] for key, field in _PLAIN.items() if key in values}
    for key, field, meaning in (
        ("messageModel", "message_model", _MODELS),
        ("consumeFromWhere", "consume_from_where", _BEGINNINGS),
        ("consumeMode", "consume_mode", ConsumeMode),
        ("initialOffset", "initial_offset", InitialOffset),
        ("rebalance.handover", "handover", Handover),
    ):
        if key in values:
            given[field] = meaning[values[key]] if isinstance(meaning, dict) else meaning(values[key])
    if "consumeTimestamp" in values:
        given["consume_timestamp"] = moment(values["consumeTimestamp"])
    given |= _threads(values)
    given["limits"] = Limits(**{field: values[key] for key, field in _LIMITS.items() if key in values})
    given["topic_limits"] = TopicLimits(**{f: values[key] for key, f in _TOPIC_LIMITS.items() if key in values})
    try:
        return ConsumerSettings(**given)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _threads(values: Mapping[str, Any]) -> dict[str, int]:
    """`threads` alone is how many there are, always; with `maxThreads`, how many there are at least."""
    threads, most = values.get("consume.threads"), values.get("consume.maxThreads")
    if threads is None:
        return {} if most is None else {"consume_thread_max": most}
    return {"consume_thread_min": threads, "consume_thread_max": threads if most is None else most}


def strategy(values: Mapping[str, Any]) -> Strategy:
    """How queues are shared out."""
    name = values.get("allocation.strategy", "Averagely")
    queues: list[MessageQueue] | None = values.get("allocation.queues")
    rooms: list[str] | None = values.get("allocation.rooms")
    if name == "Config" and queues is None:
        raise SettingsError("allocation Config needs the queues of this member: give allocation.queues, or --queue")
    if name == "MachineRoom" and not rooms:
        raise SettingsError("allocation MachineRoom needs the rooms to consume from: give allocation.rooms, or --room")
    room = room_before(values.get("allocation.separator", _ROOM_SEPARATOR))
    parameters: dict[str, Any] = {
        "rooms": None if rooms is None else frozenset(rooms),
        "queues": queues,
        "inner": _inner(values) if name == "MachineRoomNearby" else None,
        "room_of_queue": lambda queue: room(queue.broker),
        "room_of_member": room,
    }
    if "allocation.virtualNodes" in values:
        parameters["virtual_nodes"] = values["allocation.virtualNodes"]
    try:
        return build(name, Parameters(**parameters))
    except AllocationError as error:
        raise SettingsError(f"allocation {name}: {error}") from error


def _inner(values: Mapping[str, Any]) -> Strategy:
    given = values.get("allocation.inner", "Averagely")
    inner: Values = {"allocation.strategy": given} if isinstance(given, str) else flatten({"allocation": given})
    if inner.get("allocation.strategy") == "MachineRoomNearby":
        raise SettingsError("allocation.inner is MachineRoomNearby itself: choose another strategy within the rooms")
    return strategy(inner)


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values in the form of a settings file, for a look at what a worker would do."""
    content: dict[str, Any] = {}
    for key in BY_KEY:
        if key in values:
            section, _, name = key.rpartition(".")
            (content.setdefault(section, {}) if section else content)[name or key] = _plain(key, values[key])
    return content


def _plain(key: str, value: Any) -> Any:
    if key == "subscriptions":
        return [
            {"topic": s.topic, "expression": s.expression, "type": "Tag" if s.type == "TAG" else "SQL92"} for s in value
        ]
    if key == "allocation.queues":
        return [{"topic": q.topic, "broker": q.broker, "queueId": q.queue_id} for q in value]
    return value
