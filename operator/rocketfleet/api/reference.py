"""The tables of docs/manifest.md: every key of a manifest, written from the models.

The prose around them is written by hand. A table stands between two marks and is replaced as a whole.
"""

import json
import re
from collections.abc import Iterator

from rocketfleet.api.crd import object_schema
from rocketfleet.api.rules import EVERY_RULE
from rocketfleet.api.schema import Schema

_MARK = re.compile(r"(<!-- keys of (?P<root>[a-z]+)(?P<rest>[^>]*) -->\n).*?(<!-- end -->)", re.DOTALL)
_KINDS = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true`, `false`",
    "object": "object",
}
_RULES_MARK = re.compile(r"(<!-- rules -->\n).*?(<!-- end -->)", re.DOTALL)


def written(document: str) -> str:
    """The document with its tables as the models have them now."""
    schema = object_schema()

    def table(mark: re.Match[str]) -> str:
        root = mark["root"]
        return f"{mark[1]}{_table(root, schema['properties'][root], root == 'spec')}{mark[4]}"

    return _RULES_MARK.sub(lambda mark: f"{mark[1]}{_rules()}{mark[2]}", _MARK.sub(table, document))


def keys(path: str, schema: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Every key below a place: its path, its schema, whether it has to be given."""
    needed = schema.get("required", ())
    for name, held in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        yield inner, held, name in needed
        yield from keys(inner, held)
        yield from keys(f"{inner}[]", held.get("items", {}))


def _table(root: str, schema: Schema, with_defaults: bool) -> str:
    lines = (
        ["| key | type | default | |", "|---|---|---|---|"] if with_defaults else ["| key | type | |", "|---|---|---|"]
    )
    for path, held, needed in keys("", schema):
        cells = [f"`{path}`", _type(held), *([_default(held, needed)] if with_defaults else []), held["description"]]
        lines.append("| " + " | ".join(cell.replace("|", "&#124;") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}, at most {schema['maxItems']}"
    if "additionalProperties" in schema:
        return "map of texts"
    kind = _KINDS[schema["type"]]
    if schema.get("format") == "date-time":
        return "time (RFC 3339)"
    bounds = [f"{schema[name]:,}".replace(",", " ") for name in ("minimum", "maximum") if name in schema]
    return f"{kind}, {' to '.join(bounds)}" if len(bounds) == 2 else kind


def _default(schema: Schema, needed: bool) -> str:
    if needed:
        return "required"
    default = schema.get("default")
    if default is None or isinstance(default, dict):
        return ""
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


def _rules() -> str:
    lines = ["| at | what is said |", "|---|---|"]
    for rule in EVERY_RULE:
        place = f"{rule.at}{rule.field}".removeprefix(".")
        later = "" if rule.cel is not None else " (said by the operator, with the reason InvalidSpec)"
        lines.append(f"| `{place}` | {rule.message.replace('|', '&#124;')}{later} |")
    return "\n".join(lines) + "\n"
