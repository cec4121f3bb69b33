"""The few questions a development broker must be asked, over the wire, without the client that is being developed.

Is a broker registered, create a topic, create a group: starting mqadmin for each would cost a JVM (over a second), and
`rocketfleet.client` stands above this package and is itself tested with what is started here. So this is the remoting
protocol at its smallest: one connection a call, JSON header, blocking.
"""

import base64
import hashlib
import hmac
import json
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rocketfleet.devbroker.errors import ProbeError

UPDATE_AND_CREATE_TOPIC = 17
UPDATE_BROKER_CONFIG = 25
GET_BROKER_CONFIG = 26
GET_BROKER_RUNTIME_INFO = 28
GET_ROUTEINFO_BY_TOPIC = 105
GET_BROKER_CLUSTER_INFO = 106
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200

TOPIC_NOT_EXIST = 17
LONGEST_ANSWER = 1 << 24


@dataclass(frozen=True)
class Admin:
    """A super user's credentials."""

    access_key: str
    secret_key: str = field(repr=False)


@dataclass(frozen=True)
class Answer:
    code: int
    remark: str
    body: bytes


@dataclass(frozen=True)
class Probe:
    """How to reach a fleet's servers: with which credentials, through which TLS context."""

    admin: Admin | None = None
    tls: ssl.SSLContext | None = None
    timeout: float = 3.0

    def call(self, address: str, code: int, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Answer:
        """Ask one thing of a server at host:port."""
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), self.timeout) as plain:
                plain.settimeout(self.timeout)
                if self.tls is None:
                    return _exchange(plain, encode(code, fields or {}, body, self.admin))
                with self.tls.wrap_socket(plain, server_hostname=host) as secure:
                    return _exchange(secure, encode(code, fields or {}, body, self.admin))
        except (OSError, ValueError) as problem:
            raise ProbeError(f"{address} did not answer: {problem}.") from None

    def registered_brokers(self, name_server: str) -> dict[str, dict[int, str]]:
        """Broker name → broker id → address, as the name server knows them."""
        answer = self.call(name_server, GET_BROKER_CLUSTER_INFO)
        if answer.code != 0:
            raise ProbeError(f"{name_server} answered {answer.code}: {answer.remark}.")
        return parse_cluster_info(answer.body)

    def has_route(self, name_server: str, topic: str, brokers: int) -> bool:
        """Whether the name server knows the topic on that many brokers."""
        answer = self.call(name_server, GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        if answer.code == TOPIC_NOT_EXIST:
            return False
        if answer.code != 0:
            raise ProbeError(f"{name_server} answered {answer.code}: {answer.remark}.")
        return len(json.loads(quote_bare_keys(answer.body.decode()))["queueDatas"]) >= brokers


def encode(code: int, fields: Mapping[str, Any], body: bytes, admin: Admin | None = None) -> bytes:
    """One request as the bytes of its frame, signed if there are credentials."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    if admin is not None:
        texts["AccessKey"] = admin.access_key
        signed = "".join(texts[name] for name in sorted(texts)).encode() + body
        digest = hmac.new(admin.secret_key.encode(), signed, hashlib.sha1).digest()
        texts["Signature"] = base64.b64encode(digest).decode()
    header = json.dumps(
        {
            "code": code,
            "extFields": texts,
            "flag": 0,
            "language": "OTHER",
            "opaque": 1,
            "serializeTypeCurrentRPC": "JSON",
            "version": 473,
        }
    ).encode()
    return (4 + len(header) + len(body)).to_bytes(4) + len(header).to_bytes(4) + header + body


def _exchange(connection: socket.socket, request: bytes) -> Answer:
    connection.sendall(request)
    length = int.from_bytes(_receive(connection, 4))
    if not 4 <= length <= LONGEST_ANSWER:
        raise ValueError("this is not the remoting protocol")
    frame = _receive(connection, length)
    header_length = int.from_bytes(frame[:4]) & 0xFFFFFF
    header = json.loads(frame[4 : 4 + header_length])
    fields = header if isinstance(header, dict) else {}
    if "code" not in fields:
        raise ValueError("this is not the remoting protocol")
    return Answer(int(fields["code"]), str(fields.get("remark") or ""), frame[4 + header_length :])


def _receive(connection: socket.socket, length: int) -> bytes:
    received = bytearray()
    while len(received) < length:
        piece = connection.recv(length - len(received))
        if not piece:
            raise ValueError("the connection was closed")
        received += piece
    return bytes(received)


def parse_cluster_info(body: bytes) -> dict[str, dict[int, str]]:
    table = json.loads(quote_bare_keys(body.decode()))["brokerAddrTable"]
    return {
        name: {int(number): address for number, address in data["brokerAddrs"].items()} for name, data in table.items()
    }


def quote_bare_keys(text: str) -> str:
    """fastjson writes the integer keys of a map without quotes, which is not JSON."""
    return re.sub(r"([{,])(\d+):", r'\1"\2":', text)
