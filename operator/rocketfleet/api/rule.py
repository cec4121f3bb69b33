"""What a rule is, and where in a manifest it looks.

A rule is said twice, as CEL for the API server and as a function for `rocketfleet run` and the controller, and stands
for one sentence. A test holds the two against each other on generated manifests.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from rocketfleet.api.consumer_group import ConsumerGroup


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that must hold at one kind of place.

    `at` is a path in the manifest: "" is the whole object, `[]` after a name stands for each item of that list. What is
    there is `self` in the expression and the argument of `holds`. `field` names the part to point at, seen from there.
    """

    name: str
    at: str
    message: str
    cel: str | None  # None: too costly for the API server, so the controller says it with the reason InvalidSpec
    holds: Callable[[Any], bool]
    field: str = ""

    def broken_in(self, group: ConsumerGroup) -> Iterator[str]:
        """A line for each place where it does not hold."""
        for path, value in places(group, self.at):
            if not self.holds(value):
                yield said_at(path, self.field, self.message)


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """One thing that must hold between an object and what it was before; in the expression that is `oldSelf`."""

    name: str
    at: str
    message: str
    cel: str
    holds: Callable[[Any, Any], bool]
    field: str = ""

    def broken_by(self, group: ConsumerGroup, old: ConsumerGroup) -> Iterator[str]:
        """A line where the change is not allowed."""
        before = dict(places(old, self.at))
        for path, value in places(group, self.at):
            if path in before and not self.holds(value, before[path]):
                yield said_at(path, self.field, self.message)


def said_at(path: str, field: str, message: str) -> str:
    """`path: sentence`, as kubectl shows it too."""
    full = ".".join(part for part in (path, field.removeprefix(".")) if part)
    return f"{full}: {message}" if full else message


def places(group: ConsumerGroup, at: str) -> Iterator[tuple[str, Any]]:
    """What is at a path, with the path spelled out. What was left out is no place."""
    found: list[tuple[str, Any]] = [("", group)]
    for name in at.split(".") if at else []:
        key, each, _ = name.partition("[]")
        inside = [(f"{path}.{key}" if path else key, _part(value, key)) for path, value in found]
        found = [(path, value) for path, value in inside if value is not None]
        if each:
            found = [(f"{path}[{i}]", item) for path, value in found for i, item in enumerate(value)]
    yield from found


def _part(value: BaseModel, key: str) -> Any:
    for name, info in type(value).model_fields.items():
        if info.alias == key:
            return getattr(value, name)
    raise LookupError(f"{type(value).__name__} has no {key}")  # a rule with a slip of the pen: its test says so
