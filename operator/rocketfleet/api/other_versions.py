"""What another version wrote, read as far as this one understands it.

A cluster has one definition of the resource and perhaps several versions of the operator: one that is rolled back, one
that is about to take over. The API server fills the defaults of new fields into every object, so an operator that
refused what it does not know would let go of all groups at once. It leaves such keys out instead, and says which. A
status is read the same way, and what of it makes no sense is left out too: it is our own notes, and the rest of them
still holds.

Files are another matter (`checking.py`): there an unknown key is most likely a slip of the pen.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.status import ConsumerGroupStatus

Place = tuple[str | int, ...]
"""A path in nested objects and lists."""

_ROUNDS = 10  # a part that is incomplete without what was left out goes next, and so on outwards


def known_part(content: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """A ConsumerGroup without the keys that are not known, and their paths. What else is wrong with it stays."""
    try:
        ConsumerGroup.model_validate(content)
    except ValidationError as error:
        found = error.errors(include_url=False)
        places = [each["loc"] for each in found if each["type"] == "extra_forbidden"]
        return without(content, places), sorted(path_of(place) for place in places)
    return content, []


def without(content: Any, places: Iterable[Place]) -> Any:
    """A copy of the content that lacks what stands at these places."""
    result = copy.deepcopy(content)
    # Of a list's items the last go first, and what lies within another place before that place itself.
    for place in sorted(set(places), key=lambda each: [str(part).zfill(8) for part in each], reverse=True):
        holder = result
        try:
            for part in place[:-1]:
                holder = holder[part]
            del holder[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue
    return result


def path_of(place: Place) -> str:
    """A place as people write it: spec.subscriptions[0].topic."""
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def read_status(raw: Any) -> ConsumerGroupStatus:
    """The status that an object carries, as far as it can be read."""
    content = raw if isinstance(raw, dict) else {}
    for _ in range(_ROUNDS):
        try:
            return ConsumerGroupStatus.model_validate(content)
        except ValidationError as error:
            found = error.errors(include_url=False)
            places = [each["loc"][:-1] if each["type"] == "missing" else each["loc"] for each in found]
            content = without(content, [place for place in places if place])
    return ConsumerGroupStatus()
