"""Every field of a ConsumerGroup's spec, changed in every way that its type knows: from the schema of the CRD.

For each path, by its type: the least and the greatest value and one beyond each, something between, nothing (empty,
removed, null), each other word of an enumeration and one that is none of them, a text with a letter more, one that is
too long; a list grown, shrunk, doubled and emptied, a map with a key more, another and none. The schema alone says what
there is to change: a new field is mutated from the day that it is there.

`accepted` is the API server's verdict: the schema's bounds, then the rules.

After Acto (Gu et al., SOSP '23).
"""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.unit.controller.faults.api_server import Object, defaulted

from rocketfleet.api.checking import ManifestError, read_object
from rocketfleet.api.crd import object_schema
from rocketfleet.api.schema import Schema

GONE = object()
SCHEMA: Schema = object_schema()["properties"]["spec"]
LONGEST = 70_000
Path = tuple[str | int, ...]
# What a text may well be changed to, where a letter more would be nonsense.
SENSIBLE = {
    "consumeTimestamp": "2026-02-01T08:00:00Z",
    "handler": "other:handle",
    "pipeline": "other:build",
    "master": "local[2]",
    "topic": "returns",
    "expression": "paid || sent",
    "restartPolicy": "OnFailure",
    "separator": "#",
}


@dataclass(frozen=True)
class Mutation:
    """One change of a spec."""

    path: str  # as people write it; an item of a list is [], a key of a map {}
    what: str
    spec: Object

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def mutations(spec: Object) -> Iterator[Mutation]:
    """All of them, each once."""
    seen = {json.dumps(spec, sort_keys=True)}
    for path, what, value in _of(SCHEMA, spec, ()):
        changed = _with(spec, path, value)
        text = json.dumps(changed, sort_keys=True)
        if text not in seen:
            seen.add(text)
            yield Mutation(_words(path), what, changed)


def _of(schema: Schema, value: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """Ways to change what is at a path, and below it. `value` is GONE where nothing is."""
    if path:
        if value is not GONE:
            yield path, "removed", GONE
            yield path, "null", None
        for what, other in _values(schema, value, path):
            if other != value or type(other) is not type(value):
                yield path, what, other
    if schema["type"] == "object" and "properties" in schema:
        within = value if isinstance(value, dict) else {}
        for name, part in schema["properties"].items():
            if isinstance(value, dict) or not path:
                yield from _of(part, within.get(name, GONE), (*path, name))
    if schema["type"] == "array" and isinstance(value, list) and value:
        yield from _of(schema["items"], value[0], (*path, 0))


def _values(schema: Schema, value: Any, path: Path) -> Iterator[tuple[str, Any]]:
    match schema["type"]:
        case "boolean":
            yield "the other", not (schema.get("default", False) if value is GONE else value)
            yield "no boolean", "yes"
        case "integer" | "number":
            yield from _numbers(schema)
        case "string":
            yield from _texts(schema, value, path)
        case "array":
            yield from _lists(schema, value, path)
        case "object":
            yield from _objects(schema, value)


def _numbers(schema: Schema) -> Iterator[tuple[str, Any]]:
    least, most = schema["minimum"], schema["maximum"]
    yield "the least", least
    yield "below the least", least - 1
    yield "above the greatest", most + 1
    yield "the greatest", most
    yield "a text", "7"


def _texts(schema: Schema, value: Any, path: Path) -> Iterator[tuple[str, Any]]:
    if "enum" in schema:
        for word in schema["enum"]:
            yield f"{word}", word
        yield "no such word", "NoSuchWord"
        return
    yield "empty", ""
    yield "a letter", "x"
    if value is not GONE and value:
        yield "a letter more", f"{value}x"
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    if name in SENSIBLE:
        yield "sensible", SENSIBLE[name]
    if schema.get("maxLength", LONGEST) < LONGEST:
        yield "too long", "x" * (schema["maxLength"] + 1)
    yield "a number", 7


def _lists(schema: Schema, value: Any, path: Path) -> Iterator[tuple[str, Any]]:
    yield "empty", []
    if isinstance(value, list) and value:
        yield "doubled", [*value, value[0]]
        yield "one more", [*value, _another(value[0])]
        yield "reversed", value[::-1]
        if len(value) > 1:
            yield "one less", value[:-1]
    elif schema["items"]["type"] == "string":
        yield "one", ["one"]


def _another(item: Any) -> Any:
    if isinstance(item, str):
        return re.sub(r"^(\w+)", r"\1-2", item)
    changed = copy.deepcopy(item)
    for key in ("topic", "name"):
        if key in changed:
            changed[key] = "returns" if key == "topic" else f"{changed[key]}-2"
    if "ordinal" in changed:
        changed["ordinal"] += 1
    return changed


def _objects(schema: Schema, value: Any) -> Iterator[tuple[str, Any]]:
    yield "empty", {}
    if "additionalProperties" in schema:
        held = value if isinstance(value, dict) else {}
        yield "one more key", {**held, "example.com/more": "more"}
        if held:
            first = next(iter(held))
            yield "another key", {f"{key}x" if key == first else key: text for key, text in held.items()}
            yield "another value", {**held, first: f"{held[first]}x"}


def _with(spec: Object, path: Path, value: Any) -> Object:
    changed: Any = copy.deepcopy(spec)
    holder = changed
    for part in path[:-1]:
        if isinstance(part, str) and holder.get(part) is None:
            holder[part] = {}
        holder = holder[part]
    if value is not GONE:
        holder[path[-1]] = value
    elif isinstance(holder, list):
        holder.pop(0)
    else:
        holder.pop(path[-1], None)
    assert isinstance(changed, dict)
    return changed


def _words(path: Path) -> str:
    return ".".join(str(part) for part in path).replace(".0", "[]")


# -- what the API server says -----------------------------------------------------------------------------------------


def accepted(manifest: Object, old: Object) -> bool:
    """Whether the API server would take it in place of the old one."""
    whole = {**manifest, "spec": defaulted(manifest["spec"], SCHEMA)}
    if any(_misfits(whole["spec"], SCHEMA)):
        return False
    try:
        read_object(whole, read_object(old))
    except ManifestError:
        return False
    return True


def _misfits(value: Any, schema: Schema) -> Iterator[str]:
    """What the schema does not allow."""
    kind = schema["type"]
    kinds: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    kinds["number"] = (int, float)
    wrong = not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind in ("integer", "number"))
    if wrong:
        yield f"{value!r} is no {kind}"
        return
    if kind == "object":
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{name} is missing"
        for name, held in value.items():
            part = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if part:
                yield from _misfits(held, part)
        if len(value) > schema.get("maxProperties", len(value)):
            yield "too many keys"
    elif kind == "array":
        yield from _list_misfits(value, schema)
    elif kind == "string":
        fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        fits = fits and value in schema.get("enum", (value,)) and bool(re.search(schema.get("pattern", ""), value))
        if not fits:
            yield f"{value[:40]!r} is not allowed"
    elif kind in ("integer", "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{value} is out of bounds"


def _list_misfits(value: list[Any], schema: Schema) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield "too few or too many items"
    for item in value:
        yield from _misfits(item, schema["items"])
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys and all(isinstance(item, dict) for item in value):
        names = [tuple(str(item.get(key)) for key in keys) for item in value]
        if len(set(names)) < len(names):
            yield "an item is there twice"
    if schema.get("x-kubernetes-list-type") == "set" and len({str(item) for item in value}) < len(value):
        yield "an item is there twice"
