"""The settings file: JSON with the keys of a ConsumerGroup manifest, as the operator mounts it into the pod.

In a file that somebody wrote, a key that is not known is an error: a slip of the pen would otherwise run with a default
that nobody chose. In one that an operator wrote it is a setting of a newer version, which this worker never had: it is
ignored with a warning, for a group must not stand still because its operator was upgraded before its image. Such a file
is told by the variable ROCKETFLEET_SETTINGS_VERSION. The version could stand in the file too (`version`), and is taken
there; but workers that are older than it would refuse it.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.worker.configuration.setting_table import BY_KEY
from rocketfleet.worker.configuration.setting_values import ENTRY_KEYS, from_json

_log = logging.getLogger(__name__)
VERSION = 1
VERSION_KEY = "version"
VERSION_VARIABLE = "ROCKETFLEET_SETTINGS_VERSION"

Values = dict[str, object]
"""Settings by their key in the table, checked."""

_MOST_BYTES = 1 << 20
_MANIFEST = (
    "{0} is a manifest: `rocketfleet run -f {0}` runs it. A settings file is JSON with what stands under its spec, "
    "but for cluster, replicas and the like"
)
_SECTIONS = frozenset(key.partition(".")[0] for key in BY_KEY if "." in key)


def from_operator(environment: Mapping[str, str]) -> bool:
    """Whether the settings file of this process was written by an operator."""
    return bool(environment.get(VERSION_VARIABLE))


def read(path: Path, *, by_operator: bool = False) -> Values:
    """Read and check a settings file."""
    content = load(path, by_operator=by_operator)
    try:
        return flatten(content)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def load(
    path: Path, beside: Mapping[str, frozenset[str]] | None = None, *, by_operator: bool = False
) -> dict[str, object]:
    """A settings file as it stands; of one that an operator wrote, what is known of it. `beside` are sections that the
    table does not have, with their keys.
    """
    content = _load(path)
    if content.pop(VERSION_KEY, None) is None and not by_operator:
        return content
    unknown = [".".join(place) for place in _leave_out_unknown(content, beside or {})]
    if unknown:
        _log.warning(
            "%s: this version does not know %s, and ignores them: use an image as new as the operator, if they matter",
            path,
            ", ".join(sorted(unknown)),
        )
    return content


def _leave_out_unknown(content: dict[str, object], beside: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, ...]]:
    """Take out every key that is not known, and say where it stood."""
    for name, value in list(content.items()):
        keys = beside.get(name) or frozenset(_names_in(name))
        if not keys and name not in BY_KEY:
            del content[name]
            yield (name,)
        elif keys and isinstance(value, dict):
            for inner in [inner for inner in value if inner not in keys]:
                del value[inner]
                yield name, inner
            for inner, held in value.items():
                yield from _in_entries(f"{name}.{inner}", held)
        else:
            yield from _in_entries(name, value)


def _in_entries(key: str, value: object) -> Iterator[tuple[str, ...]]:
    """The same in a list of objects."""
    keys = ENTRY_KEYS.get(BY_KEY[key].kind, ()) if key in BY_KEY else ()
    for entry in value if keys and isinstance(value, list) else ():
        for inner in [inner for inner in entry if inner not in keys] if isinstance(entry, dict) else ():
            del entry[inner]
            yield key, inner


def _load(path: Path) -> dict[str, object]:
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
        if b"apiVersion:" in data and b"kind:" in data:
            raise SettingsError(_MANIFEST.format(path)) from error
        raise SettingsError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path} must hold a JSON object, the settings by their names")
    if "apiVersion" in content and "spec" in content:
        raise SettingsError(_MANIFEST.format(path))
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
