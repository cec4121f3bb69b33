"""Reading the JSON that brokers write, standard or not.

Brokers serialise Java maps with fastjson, which writes a map's keys as it writes values. A map keyed by numbers becomes
`{0:"a"}`, one keyed by queues `{{"brokerName":"b","queueId":0,"topic":"t"}:1}`. No standard parser reads that. Most
bodies are standard, so the standard library's parser goes first; what it refuses is read by the one below.

In the result an object used as a key is a tuple of its (name, value) pairs, sorted by name; bare numbers, booleans and
null stay what they are. Everything else is as the json module has it. Keys are kept simple, since Python hashes numbers
and tuples predictably and a table of made-up keys with one hash takes quadratic time: an object as a key may hold no
other object or array, an array may be no key, and an integer in a key has 64 bits.

The parser is a hand-written descent with a bounded depth; objects without objects in them, which is most of any body,
it gives to the standard one. It looks at each character a bounded number of times, so its time is linear in the input,
and it raises nothing but BodyError.
"""

import json
import re
from typing import Any, Final

from rocketfleet.wire.errors import BodyError

MAX_DEPTH: Final = 100
"""How deep objects and arrays may nest in the dialect. RocketMQ's own bodies stay below ten."""

_LEAF_WINDOW: Final = 4096
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_SPACE = re.compile(r"[ \t\n\r]*")
_WORDS: Final = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_WORD = re.compile("|".join(_WORDS))

_standard = json.JSONDecoder(strict=False)  # not strict: control characters in strings are read as they are


def loads(data: bytes | memoryview | str) -> Any:
    """Read JSON or fastjson's dialect. Raises BodyError for anything else."""
    try:
        text = data if isinstance(data, str) else str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise BodyError(f"the body is not UTF-8: {error.reason} at byte {error.start}") from error
    try:
        return _standard.decode(text)
    except json.JSONDecodeError:
        pass  # perhaps the dialect
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, thousands of brackets
        raise BodyError(f"the body is not readable as JSON: {error}") from error
    try:
        value, position = _Parser(text).value(_skip(text, 0), 0)
    except BodyError:
        raise
    except IndexError as error:
        raise BodyError("the body is not JSON: it ends too soon") from error
    except (ValueError, RecursionError) as error:
        raise BodyError(f"the body is not readable as JSON: {error}") from error
    if _skip(text, position) != len(text):
        raise BodyError(f"the body goes on after its end, at character {position}")
    return value


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None  # it matches nothing, too
    return match.end()


def _as_key(value: Any, position: int) -> Any:
    """Something hashable for a value that stands where a key should."""
    kind = type(value)
    if kind is str:
        return value
    if kind is dict:
        for part in value.items():
            _check_key_part(part[0], position)
            _check_key_part(part[1], position)
        return tuple(sorted(value.items(), key=_name_of))
    _check_key_part(value, position)
    return value


def _name_of(pair: tuple[Any, Any]) -> str:
    return str(pair[0])


def _check_key_part(value: Any, position: int) -> None:
    kind = type(value)
    if kind in (dict, list, tuple) or (kind is int and not -(1 << 63) <= value < 1 << 63):
        raise BodyError(f"the body has a key of a kind that RocketMQ never sends, before character {position}")


class _Parser:
    """Each method takes the position where its construct begins and returns the value and the position after it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, position: int, depth: int) -> tuple[Any, int]:
        text = self._text
        character = text[position]
        if character == '"':
            return _standard.raw_decode(text, position)
        if character == "{":
            # Within a window: looking for an end that is not there must not cost the whole text each time.
            end = text.find("}", position, position + _LEAF_WINDOW)
            if end > 0 and text.find("{", position + 1, end) < 0:
                try:
                    return _standard.raw_decode(text, position)
                except (ValueError, RecursionError):
                    pass  # numbers as keys, or nothing anyone can read
            return self._object(position, depth + 1)
        if character == "[":
            return self._array(position, depth + 1)
        match = _NUMBER.match(text, position)
        if match is not None:
            number = match.group()
            whole = match.group(1) is None and match.group(2) is None
            return int(number) if whole else float(number), match.end()
        match = _WORD.match(text, position)
        if match is not None:
            return _WORDS[match.group()], match.end()
        raise BodyError(f"the body is not JSON: unexpected {character!r} at character {position}")

    def _object(self, position: int, depth: int) -> tuple[dict[Any, Any], int]:
        self._check(depth, position)
        text = self._text
        result: dict[Any, Any] = {}
        position = _skip(text, position + 1)
        if text[position] == "}":
            return result, position + 1
        while True:
            key, position = self.value(position, depth)
            position = self._expect(":", position)
            value, position = self.value(position, depth)
            result[_as_key(key, position)] = value
            position = _skip(text, position)
            if text[position] == "}":
                return result, position + 1
            position = self._expect(",", position)

    def _array(self, position: int, depth: int) -> tuple[list[Any], int]:
        self._check(depth, position)
        text = self._text
        result: list[Any] = []
        position = _skip(text, position + 1)
        if text[position] == "]":
            return result, position + 1
        while True:
            value, position = self.value(position, depth)
            result.append(value)
            position = _skip(text, position)
            if text[position] == "]":
                return result, position + 1
            position = self._expect(",", position)

    def _expect(self, separator: str, position: int) -> int:
        position = _skip(self._text, position)
        found = self._text[position]
        if found != separator:
            raise BodyError(f"the body is not JSON: {found!r} instead of {separator!r} at character {position}")
        return _skip(self._text, position + 1)

    @staticmethod
    def _check(depth: int, position: int) -> None:
        if depth > MAX_DEPTH:
            raise BodyError(f"the body nests deeper than {MAX_DEPTH}, at character {position}")
