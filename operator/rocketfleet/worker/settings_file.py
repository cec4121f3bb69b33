"""The settings file: JSON with the keys of a ConsumerGroup manifest, as the operator mounts it into the pod.

A key that is not known is an error. A file that is newer than the worker, or has a slip of the pen, would otherwise run
with a default that nobody chose.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from rocketfleet.worker.setting_table import BY_KEY
from rocketfleet.worker.setting_values import SettingsError, from_json

Values = dict[str, object]
"""Settings by their key in the table, checked."""

_MOST_BYTES = 1 << 20
_SECTIONS = frozenset(key.partition(".")[0] for key in BY_KEY if "." in key)


def read(path: Path) -> Values:
    """Read and check a settings file."""
    content = load(path)
    try:
        return flatten(content)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def load(path: Path) -> dict[str, object]:
    """A settings file as it stands."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"cannot read the settings from {path}: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise SettingsError(f"{path} is larger than a settings file may be ({_MOST_BYTES} bytes)")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path} must hold a JSON object, the settings by their names")
    return content


def flatten(content: Mapping[str, object]) -> Values:
    """Nested settings as dotted keys with checked values. What is null was not given."""
    values: Values = {}
    for name, value in content.items():
        if value is None:
            continue
        if name not in _SECTIONS:
            values[name] = _checked(name, value)
        elif not isinstance(value, dict):
            raise SettingsError(f"{name} must be an object with {', '.join(_names_in(name))}")
        else:
            for inner, held in value.items():
                if held is not None:
                    values[f"{name}.{inner}"] = _checked(f"{name}.{inner}", held)
    return values


def _checked(key: str, value: object) -> object:
    setting = BY_KEY.get(key)
    if setting is None:
        section, dot, _ = key.rpartition(".")
        others = _names_in(section) if dot else [*(k for k in BY_KEY if "." not in k), *sorted(_SECTIONS)]
        raise SettingsError(f"there is no setting {key!r}: there are {', '.join(others)}")
    return from_json(setting, value)


def _names_in(section: str) -> list[str]:
    return [key.partition(".")[2] for key in BY_KEY if key.startswith(f"{section}.")]
