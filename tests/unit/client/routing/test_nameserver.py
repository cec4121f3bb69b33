"""Name servers: stay with a good one, go round when it fails, and say what failed when all do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.client.peer import Channel, Peer

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectError, NoNameServer, NoPermission, NoRoute, ProtocolError, RequestTimeout
from rocketfleet.client.routing.nameserver import NameServers
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.bodies import BrokerData, DataVersion, QueueData, TopicRouteData
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, reply_to, request

if TYPE_CHECKING:
    from collections.abc import Callable

ROUTE = TopicRouteData((QueueData("broker-a", 4, 4, 6),), (BrokerData("c", "broker-a", {0: "127.0.0.1:10911"}),))
DEAD = "127.0.0.1:1"


def knows(channel: Channel, command: Command) -> None:
    assert command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC
    if command.fields["topic"] == "T":
        channel.answer(command, body=ROUTE.encode())
    else:
        channel.answer(command, ResponseCode.TOPIC_NOT_EXIST, "No topic route info in name server")


def _servers(remoting: Remoting, *addresses: str, first: int = 0) -> NameServers:
    return NameServers(remoting, addresses, random=lambda: first / len(addresses))


async def test_the_route_of_a_topic() -> None:
    async with Peer(knows) as peer:
        remoting = Remoting(ClientConfig(peer.address))
        servers = _servers(remoting, peer.address)
        assert await servers.route("T") == ROUTE
        with pytest.raises(NoRoute, match=r"no route to topic X: the name server .* knows no broker that has it"):
            await servers.route("X")
        await remoting.close()


@pytest.mark.parametrize("version", [DataVersion(2, 1_700_000_000_000, 7), None])
async def test_the_version_of_a_masters_topics(version: DataVersion | None) -> None:
    def registered(channel: Channel, command: Command) -> None:
        assert command.code == RequestCode.QUERY_DATA_VERSION
        assert command.fields == {
            "brokerName": "broker-a",
            "brokerAddr": "10.0.0.1:10911",
            "clusterName": "c",
            "brokerId": "0",
        }
        assert DataVersion.decode(bytes(command.body)) != version, "with its own version we would pass for the broker"
        channel.answer(command, body=b"" if version is None else version.encode())

    async with Peer(registered) as peer:
        remoting = Remoting(ClientConfig(peer.address))
        assert await _servers(remoting, peer.address).topics_version("c", "broker-a", "10.0.0.1:10911") == version
        await remoting.close()


async def test_a_dead_one_is_passed_over_and_the_good_one_kept() -> None:
    async with Peer(knows) as one, Peer(knows) as two:
        remoting = Remoting(ClientConfig(one.address))
        servers = _servers(remoting, DEAD, one.address, two.address)
        for _ in range(3):
            await servers.route("T")
        assert servers.current == one.address
        assert (len(one.received), len(two.received)) == (3, 0)
        await one.stop()
        for _ in range(3):
            await servers.route("T")
        assert servers.current == two.address
        await one.listen()  # back again, but there is no reason to leave a good one
        await servers.route("T")
        assert (len(one.received), len(two.received)) == (3, 4)
        await remoting.close()


async def test_a_topic_that_does_not_exist_is_no_reason_to_ask_another() -> None:
    async with Peer(knows) as one, Peer(knows) as two:
        remoting = Remoting(ClientConfig(one.address))
        with pytest.raises(NoRoute):
            await _servers(remoting, one.address, two.address).route("X")
        assert two.received == []
        await remoting.close()


def _says(code: int) -> Callable[[Channel, Command], None]:
    return lambda channel, command: channel.answer(command, code, "not now")


@pytest.mark.parametrize(
    "bad",
    [
        lambda _channel, _command: None,
        lambda channel, _command: channel.hang_up(),
        lambda channel, _command: channel.raw(b"nonsense"),
        _says(ResponseCode.SYSTEM_ERROR),
        _says(ResponseCode.SYSTEM_BUSY),
    ],
    ids=["silent", "hangs up", "nonsense", "starting", "busy"],
)
async def test_one_that_misbehaves_is_passed_over(bad: Callable[[Channel, Command], None]) -> None:
    async with Peer(bad) as one, Peer(knows) as two:
        remoting = Remoting(ClientConfig(one.address, timeout=0.2))
        servers = _servers(remoting, one.address, two.address)
        assert await servers.route("T") == ROUTE
        assert servers.current == two.address
        await remoting.close()


async def test_an_answer_that_is_no_is_no() -> None:
    async with Peer(_says(ResponseCode.NO_PERMISSION)) as one, Peer(knows) as two:
        remoting = Remoting(ClientConfig(one.address))
        with pytest.raises(NoPermission):
            await _servers(remoting, one.address, two.address).route("T")
        assert two.received == []
        await remoting.close()


async def test_when_all_fail_each_reason_is_told_and_the_next_turn_begins_elsewhere() -> None:
    async with Peer(lambda _channel, _command: None) as silent:
        remoting = Remoting(ClientConfig(silent.address, timeout=0.5))
        await remoting.connect(silent.address)  # not within the time of a request: the machine may be busy
        servers = _servers(remoting, DEAD, silent.address)
        with pytest.raises(NoNameServer) as caught:
            await servers.route("T")
        assert {address: type(error) for address, error in caught.value.errors.items()} == {
            DEAD: ConnectError,
            silent.address: RequestTimeout,
        }
        assert "Connection refused" in str(caught.value)
        assert "no answer within" in str(caught.value)
        assert servers.current == silent.address
        await remoting.close()


async def test_with_one_name_server_its_error_is_the_error() -> None:
    remoting = Remoting(ClientConfig(DEAD))
    with pytest.raises(ConnectError, match="Connection refused"):
        await _servers(remoting, DEAD).route("T")
    await remoting.close()


async def test_a_body_that_is_no_route_is_a_protocol_error() -> None:
    async with Peer(lambda channel, command: channel.answer(command, body=b'{"queueDatas":7}')) as peer:
        remoting = Remoting(ClientConfig(peer.address))
        servers = _servers(remoting, peer.address)
        with pytest.raises(ProtocolError, match=r"GET_ROUTEINFO_BY_TOPIC \(105\) to .* body .* not readable"):
            await servers.route("T")
        peer.script = lambda channel, command: channel.answer(command, body=b"\xff\xfe")
        with pytest.raises(ProtocolError, match="GET_BROKER_CLUSTER_INFO"):
            await servers.cluster_info()
        await remoting.close()


async def test_a_static_topic_is_refused() -> None:
    body = ROUTE.encode()[:-1] + b',"topicQueueMappingByBroker":{"broker-a":{"bname":"broker-a","totalQueues":4}}}'
    async with Peer(lambda channel, command: channel.answer(command, body=body)) as peer:
        remoting = Remoting(ClientConfig(peer.address))
        with pytest.raises(NoRoute, match="it is a static topic"):
            await _servers(remoting, peer.address).route("T")
        body = ROUTE.encode()[:-1] + b',"topicQueueMappingByBroker":{}}'
        assert await _servers(remoting, peer.address).route("T") == ROUTE
        await remoting.close()


async def test_which_is_first_is_drawn_by_lot() -> None:
    class Nobody:
        async def call(self, address: str, command: Command, timeout: float | None = None) -> Command:
            del address, timeout
            return reply_to(command)

        async def oneway(self, address: str, command: Command, timeout: float | None = None) -> None: ...

    addresses = ("a:1", "b:1", "c:1")
    firsts = {NameServers(Nobody(), addresses, random=lambda n=n: n / 3).current for n in range(3)}  # type: ignore[misc]  # n is bound on purpose
    assert firsts == set(addresses)
    assert (await NameServers(Nobody(), addresses).ask(request(1))).code == 0
    with pytest.raises(ValueError, match="at least one"):
        NameServers(Nobody(), ())
