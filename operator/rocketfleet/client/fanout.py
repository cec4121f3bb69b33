"""The same call to several brokers at once, each with its own fate.

One slow or dead broker must delay no other: every call runs in a task of its own with its own time-out, and what
comes back is a table of results and a table of errors. The caller decides how much of a loss is too much.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from rocketfleet.client.errors import PartialFailure, RocketMQError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

T = TypeVar("T")


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
