"""The API server's side of the rules: expressions evaluated on objects as it sees them, by a CEL in Python.

Values are given their types by the schema, as the API server does it: a number is a double even if it is written
without a fraction, a date-time is a timestamp, and what the schema does not name is not there.
"""

import functools
from collections.abc import Iterator
from typing import Any

import celpy
from celpy import celtypes
from celpy.evaluation import CELEvalError

from rocketfleet.api.crd import object_schema
from rocketfleet.api.rule import ChangeRule, Rule
from rocketfleet.api.schema import Schema, at

_ENVIRONMENT = celpy.Environment()


@functools.cache
def schema() -> Schema:
    """The whole object's, with a name in its metadata: the API server adds that by itself."""
    whole = object_schema()
    whole["properties"]["metadata"]["properties"] = {"name": {"type": "string"}}
    return whole


@functools.cache
def _program(expression: str) -> celpy.Runner:
    return _ENVIRONMENT.program(_ENVIRONMENT.compile(expression))


def evaluate(expression: str, given: dict[str, Any]) -> bool:
    """What an expression comes to."""
    return bool(_program(expression).evaluate(given))


def holds(rule: Rule | ChangeRule, raw: Any, old: Any = None) -> bool:
    """Whether the API server would let an object pass: at each place the rule has, its expression is true."""
    assert rule.cel is not None
    part = at(schema(), rule.at)
    before = dict(_places(old, rule.at)) if old is not None else {}
    for path, value in _places(raw, rule.at):
        try:
            given = {"self": typed(value, part)}
            if isinstance(rule, ChangeRule):
                if path not in before:
                    continue
                given["oldSelf"] = typed(before[path], part)
            result = evaluate(rule.cel, given)
        except (CELEvalError, ValueError):
            return False  # the API server refuses what it cannot read or evaluate
        if not result:
            return False
    return True


def typed(value: Any, part: Schema) -> Any:
    """A value as CEL sees it."""
    kind = part["type"]
    if kind == "object":
        inner = part.get("properties")
        items = {
            name: typed(held, inner[name] if inner is not None else part["additionalProperties"])
            for name, held in value.items()
            if inner is None or name in inner
        }
        return celtypes.MapType({celtypes.StringType(name): held for name, held in items.items()})
    if kind == "array":
        return celtypes.ListType([typed(item, part["items"]) for item in value])
    if part.get("format") == "date-time":
        return celtypes.TimestampType(value)
    plain = {
        "string": celtypes.StringType,
        "integer": celtypes.IntType,
        "number": celtypes.DoubleType,
        "boolean": celtypes.BoolType,
    }
    return plain[kind](value)


def _places(raw: Any, path: str) -> Iterator[tuple[str, Any]]:
    found = [("", raw)]
    for name in path.split(".") if path else []:
        key, each, _ = name.partition("[]")
        found = [(f"{place}.{key}", value[key]) for place, value in found if value.get(key) is not None]
        if each:
            found = [(f"{place}[{i}]", item) for place, value in found for i, item in enumerate(value)]
    yield from found
