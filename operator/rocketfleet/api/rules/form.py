"""How a rule about the form of a text is said in both languages.

RE2, which the API server has, and Python agree on what is used here: classes, groups, repetition. A text is always
matched as a whole, and classes name their characters, because blanks, letters and the end of a text differ.
"""

import re

from rocketfleet.api.rule import Rule

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\t": "\\t", "\r": "\\r", "\n": "\\n"}


def quoted(text: str) -> str:
    """A text as a CEL literal."""
    return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"


def matches(name: str, pattern: str) -> str:
    """CEL: the whole of `name` has this form."""
    return f"{name}.matches({quoted(f'^({pattern})$')})"


def has_form(text: str, pattern: str) -> bool:
    """The same in Python."""
    return re.fullmatch(pattern, text) is not None


def form(name: str, at: str, pattern: str, message: str) -> Rule:
    """A text of a certain form. `pattern` in the schema would do, but could not say it in words."""
    return Rule(name, at, message, matches("self", pattern), lambda text: has_form(text, pattern))
