"""One broker itself: its state and its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.client.requests.calls import Caller, ask
from rocketfleet.wire.bodies import KVTable
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request

if TYPE_CHECKING:
    from collections.abc import Mapping


async def runtime_info(caller: Caller, address: str, *, timeout: float | None = None) -> dict[str, str]:
    """A broker's numbers about itself, by name: version, disk use, rates, queue lengths and many more."""
    answer = await ask(caller, address, request(RequestCode.GET_BROKER_RUNTIME_INFO), timeout)
    return answer.body(KVTable.decode).table


async def broker_config(caller: Caller, address: str, *, timeout: float | None = None) -> dict[str, str]:
    """All settings of a broker, by name."""
    answer = await ask(caller, address, request(RequestCode.GET_BROKER_CONFIG), timeout)
    return read_settings(bytes(answer.response.body).decode("utf-8", "replace"))


async def update_broker_config(
    caller: Caller, address: str, settings: Mapping[str, str], *, timeout: float | None = None
) -> None:
    """Change settings of a running broker. It rewrites its configuration file with all that it has."""
    body = write_settings(settings).encode()
    await ask(caller, address, request(RequestCode.UPDATE_BROKER_CONFIG, body=body), timeout)


def read_settings(text: str) -> dict[str, str]:
    """Settings as brokers write them: `name=value` lines without any quoting."""
    lines = (line.partition("=") for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name.strip(): value for name, equals, value in lines if equals}


def write_settings(settings: Mapping[str, str]) -> str:
    """Settings as brokers read them, which is Java's properties format: there a backslash must be doubled."""
    for name, value in settings.items():
        if not name or any(character in "=:#! \\\t\r\n" for character in name) or "\n" in value or "\r" in value:
            raise ValueError(f"setting {name!r} cannot be written: no blanks or =:#! in a name, no new line in a value")
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    doubled = value.replace("\\", "\\\\")
    return "\\" + doubled if doubled[:1] in (" ", "\t") else doubled  # a blank in front would be skipped
