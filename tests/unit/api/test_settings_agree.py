"""A setting has one default, wherever it is given: in a manifest, an option, a settings file, or a call of the library.

Options and files take theirs from the table, and the table from ConsumerSettings. The manifest's schema is written out,
so that it can be read: here it is held against the table.
"""

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rocketfleet.allocation.strategies import DEFAULT_STRATEGY, StrategyName, needed_parameters
from rocketfleet.api.allocation import InnerStrategy
from rocketfleet.api.spec import Consume, ConsumerGroupSpec, Rebalance, Shutdown
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.worker.configuration import settings, settings_file
from rocketfleet.worker.configuration.setting_table import BY_KEY, REQUIRED, SETTINGS, Kind

OF_WORKERS_ALONE = {
    "allocation.queues",  # a manifest has assignments, for all members
    "consume.persistIntervalSeconds",
    "rebalance.intervalSeconds",
    "rebalance.lockIntervalSeconds",
    "rebalance.heartbeatSeconds",
}


def fields_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for field in model.model_fields.values():
        key = f"{prefix}{field.alias}"
        yield key, field
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel):
            yield from fields_of(field.annotation, f"{key}.")


MANIFEST = dict(fields_of(ConsumerGroupSpec))
SHARED = [setting for setting in SETTINGS if setting.key in MANIFEST and setting.key not in REQUIRED]


def test_what_a_manifest_has_and_what_a_worker_has() -> None:
    assert BY_KEY.keys() - MANIFEST.keys() == OF_WORKERS_ALONE
    sections: dict[str, type[BaseModel]] = {"consume": Consume, "rebalance": Rebalance, "shutdown": Shutdown}
    for section, model in sections.items():
        assert {key for key, _ in fields_of(model, f"{section}.")} <= BY_KEY.keys()


@pytest.mark.parametrize("setting", SHARED, ids=lambda setting: setting.key)
def test_a_manifest_has_the_worker_s_default(setting: Any) -> None:
    field = MANIFEST[setting.key]
    if field.default is None:  # left out, the worker's holds, and the description says which that is
        assert setting.default_described in (field.description or "")
    else:
        assert field.default == setting.default
        assert not isinstance(field.default, Enum) or type(field.default) is setting.words


@pytest.mark.parametrize("setting", SHARED, ids=lambda setting: setting.key)
def test_what_a_manifest_allows_a_worker_takes(setting: Any) -> None:
    if setting.kind not in (Kind.NUMBER, Kind.SECONDS):
        return
    (low,) = (each.ge for each in MANIFEST[setting.key].metadata if isinstance(each, Ge))
    (high,) = (each.le for each in MANIFEST[setting.key].metadata if isinstance(each, Le))
    section, _, name = setting.key.rpartition(".")
    for value in (low, high):
        content: dict[str, Any] = {"groupName": "g", "subscriptions": [{"topic": "t"}], section: {name: value}}
        if setting.key == "consume.maxThreads":
            content[section]["threads"] = 1
        values = settings_file.flatten(content)
        settings.consumer_settings(values)
        settings.strategy(values)


def test_the_library_has_the_same_strategy_by_default() -> None:
    assert inspect.signature(Consumer).parameters["strategy"].default is DEFAULT_STRATEGY
    assert MANIFEST["allocation.strategy"].default is DEFAULT_STRATEGY
    assert BY_KEY["allocation.strategy"].default is DEFAULT_STRATEGY


def test_within_a_room_is_what_needs_no_parameters() -> None:
    alone = [name for name in StrategyName if not needed_parameters(name) and name != StrategyName.MACHINE_ROOM_NEARBY]
    assert [str(inner) for inner in InnerStrategy] == alone


def test_the_documentation_has_the_defaults() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "worker.md").read_text()
    for setting in SETTINGS:
        assert f"| {setting.described.replace('|', '&#124;')} |" in text
