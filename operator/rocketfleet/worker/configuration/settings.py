"""Settings by their keys, put together into what the consumer takes: `ConsumerSettings` and a strategy.

Only what was given is passed on, so that the defaults stand in one place, at the consumer.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from rocketfleet.allocation.machine_room_nearby import room_before
from rocketfleet.allocation.request import AllocationError
from rocketfleet.allocation.strategies import Parameters, Strategy, StrategyName, build, needed_parameters
from rocketfleet.base.settings_error import SettingsError
from rocketfleet.consumer.delivery.flow import QueueLimits, TopicLimits
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.worker.configuration.setting_table import BY_KEY, SETTINGS, Kind, OnTimeout, Setting
from rocketfleet.worker.configuration.setting_values import moment
from rocketfleet.worker.configuration.settings_file import Values, flatten

_PARTS: dict[str, Any] = {"limits": QueueLimits, "topic_limits": TopicLimits}  # fields that have fields of their own


def consumer_settings(values: Mapping[str, Any]) -> ConsumerSettings:
    """What the values say about consuming. Whatever is wrong with them is a SettingsError."""
    if "groupName" not in values:
        raise SettingsError("no consumer group is named: give --group, ROCKETFLEET_GROUP, or groupName in the settings")
    if not values.get("subscriptions"):
        raise SettingsError(
            "no topic is named: give --topic, ROCKETFLEET_TOPICS, or subscriptions in the settings file"
        )
    given: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    for setting in SETTINGS:
        if setting.field and setting.key in values:
            part, _, name = setting.field.rpartition(".")
            (parts[part] if part else given)[name] = _taken(setting, values[setting.key])
    if values.get("shutdown.onTimeout") == OnTimeout.WAIT:
        given["drain_timeout"] = math.inf
    try:
        return ConsumerSettings(**given, **{part: make(**parts[part]) for part, make in _PARTS.items()})
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _taken(setting: Setting, value: Any) -> Any:
    """A value as the field of ConsumerSettings has it."""
    if setting.words is not None:
        return setting.words(value)
    if setting.kind is Kind.SUBSCRIPTIONS:
        return tuple(value)
    return moment(value) if setting.key == "consumeTimestamp" else value


def strategy(values: Mapping[str, Any]) -> Strategy:
    """How queues are shared out."""
    name = _allocation(values, "strategy")
    rooms = values.get("allocation.rooms")
    room = room_before(_allocation(values, "separator"))
    parameters = Parameters(
        virtual_nodes=_allocation(values, "virtualNodes"),
        rooms=frozenset(rooms) if rooms else None,
        queues=values.get("allocation.queues"),
        inner=_inner(values) if name == StrategyName.MACHINE_ROOM_NEARBY else None,
        room_of_queue=lambda queue: room(queue.broker),
        room_of_member=room,
    )
    try:
        for parameter in needed_parameters(name):
            if getattr(parameters, parameter) is None:
                option = BY_KEY[f"allocation.{parameter}"].option
                raise SettingsError(f"allocation {name} needs {parameter}: give allocation.{parameter}, or --{option}")
        return build(name, parameters)
    except AllocationError as error:
        raise SettingsError(f"allocation {name}: {error}") from error


def _allocation(values: Mapping[str, Any], name: str) -> Any:
    setting = BY_KEY[f"allocation.{name}"]
    return values.get(setting.key, setting.default)


def _inner(values: Mapping[str, Any]) -> Strategy:
    given = _allocation(values, "inner")
    inner: Values = {"allocation.strategy": given} if isinstance(given, str) else flatten({"allocation": given})
    if inner.get("allocation.strategy") == StrategyName.MACHINE_ROOM_NEARBY:
        raise SettingsError("allocation.inner is MachineRoomNearby itself: choose another strategy within the rooms")
    return strategy(inner)


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """All settings: what was given, and what holds where nothing was. None is no limit, or not used."""
    made = consumer_settings(values)
    found: dict[str, Any] = {setting.key: setting.default for setting in SETTINGS}
    # These go by others that may have been given.
    found |= {"consume.maxThreads": made.consume_thread_max, "rebalance.heartbeatSeconds": made.heartbeat_interval}
    return found | dict(values)


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values in the form of a settings file, for a look at what a worker would do."""
    content: dict[str, Any] = {}
    for key in BY_KEY:
        if key in values:
            section, _, name = key.rpartition(".")
            (content.setdefault(section, {}) if section else content)[name or key] = _plain(key, values[key])
    return content


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None:
        return None
    if key == "subscriptions":
        return [{"topic": s.topic, "expression": s.expression, "type": s.type.value} for s in value]
    if key == "allocation.queues":
        return [{"topic": q.topic, "broker": q.broker, "queueId": q.queue_id} for q in value]
    return value
