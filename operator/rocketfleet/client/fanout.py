"""The same call many times at once: to several brokers (`each`), or for many queues or members (`bounded`).

*Brokers*: one slow or dead broker must delay no other. Every call runs in a task of its own with its own time-out, and
what comes back is a table of results and a table of errors. The caller decides how much of a loss is too much.

*Queues*: there may be thousands, so only some calls are under way at any moment. The first error stops the rest: a
caller to whom one failure is no reason to stop catches it in the call.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from rocketfleet.client.errors import PartialFailure, RocketMQError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable

T = TypeVar("T")
K = TypeVar("K", bound="Hashable")
AT_ONCE: Final = 32
"""Calls under way: enough to keep a broker busy, too few to hold up its own clients."""


@dataclass(frozen=True, slots=True)
class Partial(Generic[T]):
    """What each broker answered, or why it did not, by whatever the brokers were named with."""

    results: dict[str, T]
    errors: dict[str, RocketMQError]

    def all_or_raise(self) -> dict[str, T]:
        """The results if there was no error; else the error, or with several a summary of them."""
        if len(self.errors) == 1:
            raise next(iter(self.errors.values()))
        if self.errors:
            raise PartialFailure(self.errors)
        return self.results

    def some_or_raise(self) -> dict[str, T]:
        """The results if there are any or nobody was asked; else the errors."""
        return self.results if self.results else self.all_or_raise()


async def each(names: Iterable[str], call: Callable[[str], Awaitable[T]]) -> Partial[T]:
    """Make the call for every name at once. Only RocketMQ's errors are collected; a bug is raised."""
    names = list(dict.fromkeys(names))

    async def one(name: str) -> T | RocketMQError:
        try:
            return await call(name)
        except RocketMQError as error:
            return error

    outcomes = await asyncio.gather(*(one(name) for name in names))
    results: dict[str, T] = {}
    errors: dict[str, RocketMQError] = {}
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, RocketMQError):
            errors[name] = outcome
        else:
            results[name] = outcome
    return Partial(results, errors)


async def bounded(items: Iterable[K], call: Callable[[K], Awaitable[T]], at_once: int = AT_ONCE) -> dict[K, T]:
    """Make the call for every item, at most `at_once` at a time. After an error no further call is begun, and it is
    raised when those under way have ended: one that is given up may still be handled by the broker later.
    """
    items = list(dict.fromkeys(items))
    results: dict[K, T] = {}
    failures: list[Exception] = []
    turn = iter(items)

    async def work() -> None:
        for item in turn:
            try:
                results[item] = await call(item)
            except Exception as error:
                failures.append(error)
            if failures:
                return

    await asyncio.gather(*(work() for _ in range(min(at_once, len(items)))))
    if failures:
        raise failures[0]
    return {item: results[item] for item in items}
