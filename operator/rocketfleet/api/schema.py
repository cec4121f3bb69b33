"""A pydantic model as a structural schema, the form that Kubernetes asks of a custom resource.

It differs from the JSON schema that pydantic writes: no references, no unions (what may be left out is simply not
required), no titles, no closed objects (unknown keys are pruned, or refused by kubectl's strict validation), and
`exclusiveMinimum` is not a number. What is left is the same, in the order in which the models have it.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_LARGEST_INT32 = (1 << 31) - 1
_ORDER = ("description", "type", "format", "enum", "default", "pattern")


def structural(model: type[BaseModel]) -> Schema:
    """The schema of a model, complete in itself."""
    source = model.model_json_schema(by_alias=True, mode="validation")
    return _structural(source, source.get("$defs", {}))


def at(schema: Schema, path: str) -> Schema:
    """The part of a schema at a path, where `[]` after a name stands for the items of that list."""
    found = schema
    for name in path.split(".") if path else []:
        key, each, _ = name.partition("[]")
        found = found["properties"][key]
        if each:
            found = found["items"]
    return found


def _structural(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    said = _resolved(node, definitions)
    kind = said.get("type")
    if kind is None:
        raise ValueError(f"a structural schema needs one type here: {said}")
    if kind == "integer":
        said["format"] = "int32" if said.get("maximum", _LARGEST_INT32 + 1) <= _LARGEST_INT32 else "int64"
    result: Schema = {key: said[key] for key in _ORDER if key in said}
    for limit in ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties"):
        if limit in said:
            result[limit] = said[limit]
    if "default" in said:
        # In full, though the API server would fill it in: it holds the default as it stands against the rules.
        result["default"] = _default(said["default"])
        if result["default"] is None:
            del result["default"]
    result |= {key: value for key, value in said.items() if key.startswith("x-kubernetes-")}
    if "items" in said:
        result["items"] = _structural(said["items"], definitions)
    if isinstance(said.get("additionalProperties"), dict):
        result["additionalProperties"] = _structural(said["additionalProperties"], definitions)
    if said.get("required"):
        result["required"] = said["required"]
    if "properties" in said:
        result["properties"] = {name: _structural(held, definitions) for name, held in said["properties"].items()}
    return result


def _default(value: Any) -> Any:
    """A default as people write it: without nulls, whole numbers without a fraction."""
    if isinstance(value, dict):
        return {key: _default(held) for key, held in value.items() if held is not None}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _resolved(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """References and unions with null replaced by what they stand for. What is said at the place itself wins."""
    said = dict(node)
    if "$ref" in said:
        target = definitions[said.pop("$ref").removeprefix("#/$defs/")]
        return _resolved({**target, **said}, definitions)
    if "anyOf" in said:
        kinds = [kind for kind in said.pop("anyOf") if kind.get("type") != "null"]
        if len(kinds) != 1:
            raise ValueError(f"a structural schema has no unions, but here is one of {kinds}")
        return _resolved({**kinds[0], **said}, definitions)
    return said
