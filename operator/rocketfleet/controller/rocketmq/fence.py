"""Brokers are written only while this operator leads: every request that changes something asks for the same permission
as a write to Kubernetes does (operator/leader.py), and is given up before the term can end.

A leader that was frozen wakes up with a decision in its hands: "this queue has no offset", "nobody is in the group". By
then another leads and the group has moved on. So it is not enough that a pass began while we led.

Whatever is not known to read only is a write. To ask for a group's settings is one too: a broker that may create groups
creates the one it is asked for.
"""

from typing import Final, Protocol

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command

READS: Final = frozenset(
    {
        RequestCode.PULL_MESSAGE,  # how the age of a message is read
        *(code for code in RequestCode if code.name.startswith(("GET_", "QUERY_", "SEARCH_", "VIEW_"))),
    }
) - {RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG}


class WriteGuard(Protocol):
    """Who is asked before each write: the leadership of an operator, as far as writing needs it."""

    def may_act(self) -> bool: ...

    def seconds_left(self) -> float: ...


class TermOver(RocketMQError):
    """Another operator may lead now: nothing is written at the brokers."""

    def __init__(self) -> None:
        super().__init__("this operator does not lead: nothing is written at the brokers")


class FencedRemoting(Remoting):
    """Connections over which is written only while the guard allows it."""

    def __init__(self, config: ClientConfig, guard: WriteGuard) -> None:
        super().__init__(config)
        self._guard = guard
        self._longest = config.timeout

    async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
        return await super().call(address, command, self._allowed(command, timeout))

    async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None:
        await super().oneway(address, command, self._allowed(command, timeout))

    def _allowed(self, command: Command, timeout: float | None) -> float | None:
        """How long the request may take. TermOver if it must not be made."""
        if command.code in READS:
            return timeout
        if not self._guard.may_act():
            raise TermOver
        return min(self._longest if timeout is None else timeout, self._guard.seconds_left())


def fenced_client(config: ClientConfig, guard: WriteGuard | None) -> Client:
    """A client that writes only while the guard allows it; without one, always."""
    if guard is None:
        return Client(config)
    return Client(config, remoting=lambda config: FencedRemoting(config, guard))
