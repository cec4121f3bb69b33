"""`rocketfleet cluster`: the brokers that the name server knows, and their state."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypedDict

import click

from rocketfleet.cli.access.connection import ConnectionOptions, connection_options
from rocketfleet.cli.output import OutputFormat, asynchronous, output_option, say_failures, show_rows
from rocketfleet.client.client import Client
from rocketfleet.client.errors import ResponseError
from rocketfleet.client.fanout import each
from rocketfleet.client.requests import broker_admin
from rocketfleet.wire.bodies import MASTER_ID
from rocketfleet.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocketfleet.client.requests.calls import Caller
    from rocketfleet.wire.bodies import ClusterInfo

_ATTEMPTS = 10
"""How often a broker is asked that fails by itself, and with how many seconds between two attempts."""
_PAUSE = 0.3


class BrokerRow(TypedDict):
    """A replica of a broker. What only the broker itself can tell is None if it does not answer."""

    cluster: str
    broker: str
    id: int
    role: str
    address: str
    version: str | None
    in_per_second: float | None
    out_per_second: float | None
    disk_used: str | None
    answers: bool


@click.command(
    short_help="Show the brokers of a cluster.",
    epilog="\b\nExample:\n  rocketfleet cluster --name-server 10.0.0.1:9876 -o json",
)
@output_option
@connection_options
@asynchronous
async def cluster(connection: ConnectionOptions, output: OutputFormat) -> int:
    """Show brokers, their roles, addresses, versions and rates (messages per second over the last 10 seconds).

    The exit code is 1 if one of them does not answer.
    """
    async with Client(connection.config()) as client:
        info = await client.name_servers.cluster_info()
        addresses = [address for data in info.broker_addr_table.values() for address in data.broker_addrs.values()]
        asked = await each(addresses, lambda address: broker_facts(client.remoting, address))
    show_rows(output, broker_rows(info, asked.results), "The name server knows no broker.")
    say_failures(asked.errors)
    return 1 if asked.errors or not addresses else 0


async def broker_facts(caller: Caller, address: str) -> dict[str, str]:
    """What a broker says about itself.

    In its first second it has not measured a rate yet, and fails to answer because of that; so it is asked again.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return await broker_admin.runtime_info(caller, address)
        except ResponseError as error:
            if error.code != ResponseCode.SYSTEM_ERROR:
                raise
        await asyncio.sleep(_PAUSE)
    return await broker_admin.runtime_info(caller, address)


def broker_rows(info: ClusterInfo, facts: Mapping[str, Mapping[str, str]]) -> list[BrokerRow]:
    """One row per replica, by cluster, broker name and id. Pure."""
    rows = []
    for data in info.broker_addr_table.values():
        for number, address in data.broker_addrs.items():
            known = facts.get(address)
            told = known or {}
            disk = _first_number(told.get("commitLogDiskRatio"))
            rows.append(
                BrokerRow(
                    cluster=data.cluster,
                    broker=data.broker_name,
                    id=number,
                    role="master" if number == MASTER_ID else "slave",
                    address=address,
                    version=_version(told.get("brokerVersionDesc")),
                    in_per_second=_first_number(told.get("putTps")),
                    out_per_second=_first_number(told.get("getTransferredTps")),
                    disk_used=None if disk is None or disk < 0 else f"{disk:.0%}",
                    answers=known is not None,
                )
            )
    return sorted(rows, key=lambda row: (row["cluster"], row["broker"], row["id"]))


def _version(text: str | None) -> str | None:
    """`V5_5_0` is 5.5.0."""
    return text.removeprefix("V").replace("_", ".") if text else None


def _first_number(text: str | None) -> float | None:
    """Rates come as three averages, over 10 seconds, a minute and ten minutes."""
    try:
        return round(float((text or "").split()[0]), 2)
    except (IndexError, ValueError):
        return None
