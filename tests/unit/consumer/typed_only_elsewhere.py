"""Handlers whose annotations cannot be evaluated: the names are there for type checkers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketfleet.wire.message import ReceivedMessage


def one(message: ReceivedMessage) -> None: ...


def many(messages: list[ReceivedMessage]) -> None: ...
