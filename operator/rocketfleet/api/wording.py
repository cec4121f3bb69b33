"""What pydantic finds wrong with a manifest, in words that say what to change.

One line for each error: the path as it stands in the manifest, then the sentence.
"""

import difflib
import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "string": "a text (in quotes, if YAML takes it for something else)",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object with keys",
    "model": "an object with keys",
}
_LIMITS = {
    "greater_than_equal": ("ge", "give {0:g} or more"),
    "less_than_equal": ("le", "give {0:g} or less"),
    "string_too_short": ("min_length", "give at least {0} characters"),
    "string_too_long": ("max_length", "give at most {0} characters"),
    "too_short": ("min_length", "give at least {0} items"),
    "too_long": ("max_length", "give at most {0} items"),
}


def lines_of(error: ValidationError, model: type[BaseModel], prefix: str = "") -> list[str]:
    """An error as lines. `model` is what was read, for the names of its keys; `prefix` where it stands."""
    return [f"{_path(prefix, found['loc'])}: {_sentence(found, model)}" for found in error.errors(include_url=False)]


def _path(prefix: str, loc: Sequence[str | int]) -> str:
    path = prefix
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _sentence(found: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given, loc = found["type"], found["input"], found["loc"]
    context: dict[str, Any] = found.get("ctx", {})
    if kind == "missing":
        return f"is missing. {_description(model, loc)}".rstrip()
    if kind == "extra_forbidden":
        return _unknown_key(str(loc[-1]), _keys(model, loc[:-1]))
    if kind == "enum":
        return f"is {shown(given)}: choose {context['expected']}"
    if kind == "string_pattern_mismatch":
        return f"is {shown(given)}, which has not the right form. {_description(model, loc)}".rstrip()
    if kind in _LIMITS:
        name, advice = _LIMITS[kind]
        subject = kind.removeprefix("string_").replace("_", " ") if "too_" in kind else shown(given)
        return f"is {subject}: {advice.format(context[name])}"
    for name, wanted in _KINDS.items():
        if kind in (f"{name}_type", f"{name}_parsing", f"{name}_from_float", f"{name}_attributes_type"):
            return f"is {shown(given)}: give {wanted}"
    return found["msg"]


def _unknown_key(key: str, keys: list[str]) -> str:
    near = difflib.get_close_matches(key, keys, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"there is no such key: {meant}there are {', '.join(keys)}"


def _keys(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    inner = _model_at(model, loc)
    return [] if inner is None else [info.alias or name for name, info in inner.model_fields.items()]


def _description(model: type[BaseModel], loc: Sequence[str | int]) -> str:
    inner = _model_at(model, loc[:-1])
    for info in inner.model_fields.values() if inner is not None else ():
        if info.alias == loc[-1]:
            return info.description or ""
    return ""


def _model_at(model: type[BaseModel], loc: Sequence[str | int]) -> type[BaseModel] | None:
    """The model whose keys stand at a place."""
    found: type[BaseModel] | None = model
    for part in loc:
        if isinstance(part, int):
            continue  # a list's items are of the model that its annotation names
        inner = [info.annotation for info in found.model_fields.values() if info.alias == part] if found else []
        found = _model_in(inner[0]) if inner else None
    return found


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in `X`, `X | None` or `list[X]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _model_in(part)
        if found is not None:
            return found
    return None


def shown(value: object) -> str:
    """A wrong value, short enough for a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
