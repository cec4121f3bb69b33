"""The user's handler, looked at once: is it a coroutine function, does it take one message or a list of them?

A parameter annotated as a list or a sequence takes a batch; anything else takes a single message. `batch` says so
where the annotation can't.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, get_origin

from rocketfleet.wire.message import ReceivedMessage

SingleHandler = Callable[[ReceivedMessage], object] | Callable[[ReceivedMessage], Awaitable[object]]
BatchHandler = Callable[[list[ReceivedMessage]], object] | Callable[[list[ReceivedMessage]], Awaitable[object]]
_GENERATORS = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler and what its signature says."""

    call: Callable[[Any], Any]
    is_async: bool
    takes_batch: bool

    @property
    def name(self) -> str:
        return f"{getattr(self.call, '__module__', '?')}:{getattr(self.call, '__qualname__', repr(self.call))}"


def inspect_handler(call: Callable[[Any], Any], *, batch: bool | None = None) -> Handler:
    """Look at a handler. One that cannot be called with exactly one argument is a TypeError that says so."""
    if not callable(call):
        raise TypeError(f"a {type(call).__name__} cannot be called: give a function that takes a message")
    try:
        signature = inspect.signature(call, eval_str=True)
    except (NameError, AttributeError, TypeError, SyntaxError):  # say, under TYPE_CHECKING: the text has to do
        signature = inspect.signature(call)
    except ValueError:  # a builtin without a signature
        return Handler(call, is_async=False, takes_batch=bool(batch))
    try:
        bound = signature.bind(object())
    except TypeError as error:
        raise TypeError(f"it must take exactly one argument, the message or a list of them: {error}") from None
    method = getattr(call, "__call__", None)  # noqa: B004 - looked at, not tested for
    if any(is_generator(one) for is_generator in _GENERATORS for one in (call, method)):
        raise TypeError("it is a generator function, of which nothing would run: it must not `yield`")
    is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(method)
    if batch is None:
        parameter = signature.parameters[next(iter(bound.arguments))]
        batch = _is_list(parameter.annotation)
    return Handler(call, is_async=is_async, takes_batch=batch)


def _is_list(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("list", "List", "Sequence", "Iterable", "tuple"))
    kind = get_origin(annotation) or annotation
    return (
        isinstance(kind, type) and not issubclass(kind, str | bytes) and issubclass(kind, list | tuple)
    ) or _is_sequence(kind)


def _is_sequence(kind: object) -> bool:
    from collections.abc import Collection, Iterable, Sequence

    return kind in (Sequence, Iterable, Collection)
