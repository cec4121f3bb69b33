"""An object as it comes, from a file or from a cluster, made into a ConsumerGroup or into lines that say what is wrong.

Texts that look like numbers are not taken for numbers here, as the API server does not: a manifest that runs on a
laptop is one that a cluster accepts.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import API_VERSION, GROUP, KIND
from rocketfleet.api.other_versions import known_part, read_status
from rocketfleet.api.rules import CHANGE_RULES, RULES
from rocketfleet.api.template import PodSpec
from rocketfleet.api.wording import lines_of, shown


class ManifestError(ValueError):
    """A manifest that cannot be used. `problems` has one line for each thing to change."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def problems(group: ConsumerGroup, old: ConsumerGroup | None = None) -> list[str]:
    """What the rules find wrong with a group, and with the change from what it was."""
    if group.spec.template is not None:
        try:
            _ = group.spec.template.pod  # the rules look into it
        except ValidationError as error:
            return lines_of(error, PodSpec, "spec.template.spec")
    found = [line for rule in RULES for line in rule.broken_in(group)]
    if old is not None:
        found += [line for rule in CHANGE_RULES for line in rule.broken_by(group, old)]
    return found


def read_object(raw: Mapping[str, Any], old: ConsumerGroup | None = None) -> ConsumerGroup:
    """An object, checked in full. Its status is read as far as it can be. ManifestError says all that is wrong."""
    try:
        return _checked(_validated(_given(raw)), raw, old)
    except ValidationError as error:
        raise ManifestError(lines_of(error, ConsumerGroup)) from error


def read_stored_object(raw: Mapping[str, Any]) -> tuple[ConsumerGroup, list[str]]:
    """An object that an API server has kept: a key that is not known is left out, and named beside the object.
    Anything else that is wrong is a ManifestError.
    """
    given, unknown = known_part(_given(raw))
    try:
        return _checked(_validated(given), raw, None), unknown
    except ValidationError as error:
        raise ManifestError(lines_of(error, ConsumerGroup)) from error


def _given(raw: Mapping[str, Any]) -> Any:
    """What somebody wrote, as JSON has it."""
    wrong = _wrong_kind(raw)
    if wrong:
        raise ManifestError([wrong])
    return _without_nulls({key: value for key, value in raw.items() if key != "status"})


def _validated(given: Any) -> ConsumerGroup:
    try:
        text = json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ManifestError([f"this is no JSON, which Kubernetes needs: {error}"]) from error
    return ConsumerGroup.model_validate_json(text, strict=True)


def _checked(group: ConsumerGroup, raw: Mapping[str, Any], old: ConsumerGroup | None) -> ConsumerGroup:
    found = problems(group, old)
    if found:
        raise ManifestError(found)
    return group.model_copy(update={"status": read_status(raw["status"])}) if raw.get("status") else group


def _wrong_kind(raw: Mapping[str, Any]) -> str | None:
    version, kind = raw.get("apiVersion"), raw.get("kind")
    if kind != KIND:
        return f"kind is {shown(kind)}: this reads {KIND} of {API_VERSION}"
    if version != API_VERSION:
        known = "another version" if str(version).startswith(f"{GROUP}/") else "something else"
        return f"apiVersion is {shown(version)}, which is {known}: write {API_VERSION}"
    return None


def _without_nulls(value: Any, path: tuple[str, ...] = ()) -> Any:
    """What is null was not given, as for the API server. A pod's spec is left alone: there null has a meaning."""
    if path == ("spec", "template", "spec"):
        return value
    if isinstance(value, dict):
        return {key: _without_nulls(held, (*path, str(key))) for key, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_without_nulls(held, (*path, "[]")) for held in value]
    return value
