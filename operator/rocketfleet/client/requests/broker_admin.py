"""One broker itself: its state and its configuration."""

from __future__ import annotations

from rocketfleet.client.requests.calls import Caller, ask
from rocketfleet.wire.bodies import KVTable
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request


async def runtime_info(caller: Caller, address: str, *, timeout: float | None = None) -> dict[str, str]:
    """A broker's numbers about itself, by name: version, disk use, rates, queue lengths and many more."""
    answer = await ask(caller, address, request(RequestCode.GET_BROKER_RUNTIME_INFO), timeout)
    return answer.body(KVTable.decode).table


async def broker_config(caller: Caller, address: str, *, timeout: float | None = None) -> dict[str, str]:
    """All settings of a broker, by name."""
    answer = await ask(caller, address, request(RequestCode.GET_BROKER_CONFIG), timeout)
    return read_settings(bytes(answer.response.body).decode("utf-8", "replace"))


def read_settings(text: str) -> dict[str, str]:
    """Settings as brokers write them: `name=value` lines without any quoting."""
    lines = (line.partition("=") for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name.strip(): value for name, equals, value in lines if equals}
