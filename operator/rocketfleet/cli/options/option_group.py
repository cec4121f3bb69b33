"""Options that belong together reach a command as one object."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def option_group(name: str, group: type[Any], *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Give a command these options; it gets them as `name`, a `group`: a dataclass with a field for each of them."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def with_group(*args: Any, **given: Any) -> Any:
            made = group(**{field.name: given.pop(field.name) for field in fields(group)})
            return command(*args, **{name: made}, **given)

        decorated: Any = with_group
        for option in reversed(options):
            decorated = option(decorated)
        result: F = decorated
        return result

    return decorate
