"""The few questions a development broker must be asked, over the wire, without the client that is being developed.

Is a broker registered, create a topic, create a group: starting mqadmin for each would cost a JVM (over a second), and
`rocketfleet.client` is itself tested with what is started here. So this is the remoting protocol at its smallest: the
bytes of `rocketfleet.wire`, one connection a call, blocking.
"""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocketfleet.devbroker.errors import ProbeError
from rocketfleet.wire import acl, command
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.bodies import ClusterInfo, TopicRouteData
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.frame import FrameDecoder

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Probe:
    """How to reach a fleet's servers: with a super user's credentials, through which TLS context."""

    admin: Credentials | None = None
    tls: ssl.SSLContext | None = None
    timeout: float = 3.0

    def call(self, address: str, code: int, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Command:
        """Ask one thing of a server at host:port."""
        host, _, port = address.rpartition(":")
        asked = command.request(code, fields, body)
        if self.admin is not None:
            asked.fields |= acl.sign(self.admin, asked.fields, body)
        try:
            with socket.create_connection((host, int(port)), self.timeout) as plain:
                plain.settimeout(self.timeout)
                if self.tls is None:
                    return _exchange(plain, asked)
                with self.tls.wrap_socket(plain, server_hostname=host) as secure:
                    return _exchange(secure, asked)
        except (OSError, ValueError) as problem:
            raise _no_answer(address, problem) from None

    def ask(self, address: str, code: int, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Command:
        """The same; an answer that is no success is an error."""
        answer = self.call(address, code, fields, body)
        if answer.code != ResponseCode.SUCCESS:
            raise _refused(address, answer)
        return answer

    def registered_brokers(self, name_server: str) -> dict[str, dict[int, str]]:
        """Broker name → broker id → address, as the name server knows them."""
        answer = self.ask(name_server, RequestCode.GET_BROKER_CLUSTER_INFO)
        try:
            table = ClusterInfo.decode(answer.body).broker_addr_table
        except WireError as problem:
            raise _no_answer(name_server, problem) from None
        return {name: data.broker_addrs for name, data in table.items()}

    def has_route(self, name_server: str, topic: str, brokers: int) -> bool:
        """Whether the name server knows the topic on that many brokers."""
        answer = self.call(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return False
        if answer.code != ResponseCode.SUCCESS:
            raise _refused(name_server, answer)
        try:
            return len(TopicRouteData.decode(answer.body).queue_datas) >= brokers
        except WireError as problem:
            raise _no_answer(name_server, problem) from None


def _no_answer(address: str, problem: Exception) -> ProbeError:
    return ProbeError(f"{address} did not answer: {str(problem).removesuffix('.')}.")


def _refused(address: str, answer: Command) -> ProbeError:
    return ProbeError(f"{address} answered {answer.code}: {answer.remark or ''}.")


def _exchange(connection: socket.socket, asked: Command) -> Command:
    connection.sendall(command.encode(asked))
    decoder = FrameDecoder()
    while True:
        chunk = connection.recv(_CHUNK)
        if not chunk:
            raise ValueError("the connection was closed")
        for frame in decoder.feed(chunk):
            answer = command.decode(frame)
            if not answer.is_response:
                raise ValueError("this is not the remoting protocol")
            return answer
