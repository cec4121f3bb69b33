"""Changing the settings of a running broker, for tests that need another one than it started with."""

from collections.abc import Mapping

from rocketfleet.client.requests.calls import Caller, ask
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request


async def update_broker_config(
    caller: Caller, address: str, settings: Mapping[str, str], *, timeout: float | None = None
) -> None:
    """Change settings of a running broker. It rewrites its configuration file with all that it has."""
    body = write_settings(settings).encode()
    await ask(caller, address, request(RequestCode.UPDATE_BROKER_CONFIG, body=body), timeout)


def write_settings(settings: Mapping[str, str]) -> str:
    """Settings as brokers read them, which is Java's properties format: there a backslash must be doubled."""
    for name, value in settings.items():
        if not name or any(character in "=:#! \\\t\r\n" for character in name) or "\n" in value or "\r" in value:
            raise ValueError(f"setting {name!r} cannot be written: no blanks or =:#! in a name, no new line in a value")
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    doubled = value.replace("\\", "\\\\")
    return "\\" + doubled if doubled[:1] in (" ", "\t") else doubled  # a blank in front would be skipped
