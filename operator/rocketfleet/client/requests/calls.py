"""What every typed call does: ask, judge the answer's code, read its body or a field of it.

The typed calls themselves are functions that take a `Caller` first and the broker's address second; they stand in the
files broker_*.py by subject. `Remoting` is the caller; a test may pass anything that has its two methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from rocketfleet.client.errors import ProtocolError, response_error
from rocketfleet.wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from rocketfleet.wire.bodies import DataVersion
    from rocketfleet.wire.command import Command

T = TypeVar("T")


class Caller(Protocol):
    """Sends commands to addresses; see `Remoting`."""

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        """Send a request and return the answer, whatever its code."""
        ...

    async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None:
        """Send a request that has no answer."""
        ...


class Answer:
    """A response together with what it answers, so that whatever is wrong with it can be said precisely."""

    __slots__ = ("peer", "request_code", "response")

    def __init__(self, response: Command, peer: str, request_code: int) -> None:
        self.response = response
        self.peer = peer
        self.request_code = request_code

    @property
    def code(self) -> int:
        """The response's code; 0 is success."""
        return self.response.code

    def body(self, decode: Callable[[bytes], T]) -> T:
        """The body, read by a decoder of the wire; one that cannot be read is a ProtocolError."""
        try:
            return decode(bytes(self.response.body))
        except WireError as error:
            raise self._unreadable(f"the body of the answer is not readable: {error}") from error

    def number(self, field: str) -> int:
        """A field that must be there and be a number."""
        text = self.response.fields.get(field)
        try:
            return int(text)  # type: ignore[arg-type]  # None is one of the errors caught here
        except (TypeError, ValueError):
            raise self._unreadable(f"the answer's field {field} should be a number and is {text!r}") from None

    def text(self, field: str) -> str:
        """A field that must be there."""
        value = self.response.fields.get(field)
        if value is None:
            raise self._unreadable(f"the answer has no field {field}")
        return value

    def _unreadable(self, reason: str) -> ProtocolError:
        return ProtocolError(self.peer, reason, self.request_code)


async def ask(
    caller: Caller, address: str, command: Command, timeout: float | None = None, *, accept: Container[int] = ()
) -> Answer:
    """Make a call; any code but success and those accepted is raised as a ResponseError."""
    response = await caller.call(address, command, timeout)
    code = response.code
    if code != 0 and code not in accept:
        raise response_error(code, response.remark, address, command.code)
    return Answer(response, address, command.code)


async def all_pages(
    caller: Caller,
    address: str,
    request_page: Callable[[int, str], Command],
    read: Callable[[bytes], tuple[Mapping[str, T], DataVersion | None]],
    total: str,
    timeout: float | None = None,
) -> dict[str, T]:
    """A table that a broker sends page by page, from the start again if it changes meanwhile. `request_page` is given
    how many entries were read and their version; `total` is the field that tells how many there are.
    """
    table: dict[str, T] = {}
    version, start = "", 0
    while True:
        answer = await ask(caller, address, request_page(start, version), timeout)
        page, at = answer.body(read)
        now = at.to_json() if at is not None else ""
        if version and now != version:
            table, version, start = {}, now, 0
            continue
        version = now
        table.update(page)
        start += len(page)
        # An older broker has sent everything, and does not say how much that is.
        if total not in answer.response.fields or not page or start >= answer.number(total):
            return table
