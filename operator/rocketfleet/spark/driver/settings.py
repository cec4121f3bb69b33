"""What a driver is told: the settings file that a worker of the group would get, with a section `spark` beside it.

{"groupName": "orders", "subscriptions": […], …, "spark": {"pipeline": "shop:revenue", "checkpoint": "s3a://…"}}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.worker.configuration import settings as worker_settings
from rocketfleet.worker.configuration import settings_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocketfleet.consumer.settings import ConsumerSettings

SECTION = "spark"
KUBERNETES = "k8s"
# Key in the file → field, and its type.
_FIELDS: dict[str, tuple[str, type]] = {
    "pipeline": ("pipeline", str),
    "checkpoint": ("checkpoint", str),
    "master": ("master", str),
    "executors": ("executors", int),
    "conf": ("conf", dict),
    "trigger": ("trigger", str),
    "maxOffsetsPerTrigger": ("max_offsets_per_trigger", int),
}
_REQUIRED = ("pipeline", "checkpoint")


@dataclass(frozen=True)
class SparkSettings:
    """The section `spark`."""

    pipeline: str
    checkpoint: str
    master: str = "local[*]"
    executors: int = 1
    conf: Mapping[str, str] = field(default_factory=dict)
    trigger: str | None = None
    max_offsets_per_trigger: int | None = None

    @property
    def is_local(self) -> bool:
        """Whether the driver does the work itself."""
        return self.master.startswith("local")


@dataclass(frozen=True)
class DriverSettings:
    """All of it."""

    consumer: ConsumerSettings
    spark: SparkSettings

    @property
    def group(self) -> str:
        return self.consumer.group

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(subscription.topic for subscription in self.consumer.subscriptions)

    @property
    def expression(self) -> str:
        """The tags that are wanted: the same of every topic."""
        return self.consumer.subscriptions[0].expression


def read(path: Path, *, by_operator: bool = False) -> DriverSettings:
    """Read and check the file. SettingsError says what is wrong."""
    content = settings_file.load(path, {SECTION: frozenset(_FIELDS)}, by_operator=by_operator)
    try:
        return settings_of(content)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def settings_of(content: Mapping[str, Any]) -> DriverSettings:
    """The settings out of the file's content."""
    values = settings_file.flatten({name: value for name, value in content.items() if name != SECTION})
    made = DriverSettings(worker_settings.consumer_settings(values), _spark(content.get(SECTION)))
    if any(one.expression != made.expression for one in made.consumer.subscriptions):
        raise SettingsError("subscriptions differ in their expressions: a Spark query reads all topics with the same")
    return made


def _spark(section: object) -> SparkSettings:
    if not isinstance(section, dict):
        raise SettingsError(f"there is no section {SECTION!r}: this is not the settings file of a driver")
    given: dict[str, Any] = {}
    for name, value in section.items():
        if name not in _FIELDS:
            raise SettingsError(f"there is no setting {SECTION}.{name}: there are {', '.join(_FIELDS)}")
        field_name, kind = _FIELDS[name]
        if value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise SettingsError(f"{SECTION}.{name} is a {type(value).__name__}: give a {kind.__name__}")
        given[field_name] = value
    for name in _REQUIRED:
        if name not in given:
            raise SettingsError(f"{SECTION}.{name} is missing")
    return SparkSettings(**given)
