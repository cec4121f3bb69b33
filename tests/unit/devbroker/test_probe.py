"""The smallest remoting client: its bytes, and how it fails."""

import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from rocketfleet.devbroker.errors import ProbeError
from rocketfleet.devbroker.probe import Probe
from rocketfleet.wire.acl import Credentials

Serve = Callable[[bytes], str]


@pytest.fixture
def heard() -> list[bytes]:
    """What was asked."""
    return []


@pytest.fixture
def serve(heard: list[bytes]) -> Iterator[Serve]:
    """serve(bytes) answers every connection with these bytes, once something was asked; returns its address."""
    servers: list[tuple[socket.socket, threading.Thread]] = []

    def start(answer: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))

        def run() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65536))
                    connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        servers.append((server, thread))
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server, thread in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(20)


def frame(header: bytes, body: bytes = b"") -> bytes:
    return (4 + len(header) + len(body)).to_bytes(4) + len(header).to_bytes(4) + header + body


def header_of(request: bytes) -> dict[str, object]:
    length = int.from_bytes(request[4:8])
    header: dict[str, object] = json.loads(request[8 : 8 + length])
    return header


def test_a_request_is_one_frame(serve: Serve, heard: list[bytes]) -> None:
    Probe().call(serve(frame(b'{"code":0,"flag":1}')), 17, {"topic": "orders", "order": True, "perm": 6}, b"body")
    (request,) = heard
    assert int.from_bytes(request[:4]) == len(request) - 4
    assert request.endswith(b"body")
    header = header_of(request)
    assert header["code"] == 17
    assert header["extFields"] == {"topic": "orders", "order": "true", "perm": "6"}


def test_a_request_is_signed_over_sorted_values_and_body(serve: Serve, heard: list[bytes]) -> None:
    address = serve(frame(b'{"code":0,"flag":1}'))
    Probe(Credentials("root", "secret")).call(address, 17, {"b": "2", "a": "1"}, b"body")
    fields = header_of(heard[0])["extFields"]
    assert isinstance(fields, dict)
    assert fields["AccessKey"] == "root"
    # printf root12body | openssl dgst -sha1 -hmac secret -binary | base64
    assert fields["Signature"] == "bQpCKorIZc816XpJY1172zlD0KQ="


def test_an_answer_is_taken_apart(serve: Serve) -> None:
    address = serve(frame(b'{"code":17,"flag":1,"remark":"no such topic"}', b"{}"))
    answer = Probe().call(address, 105)
    assert (answer.code, answer.remark, bytes(answer.body)) == (17, "no such topic", b"{}")
    assert not Probe().has_route(address, "orders", 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00\x00",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(b"not json"),
        frame(b"{}"),
        frame(b"[]"),
        b"\x00\x00\x00\x01x",
    ],
)
def test_what_is_not_an_answer_is_an_error(serve: Serve, answer: bytes) -> None:
    with pytest.raises(ProbeError, match="did not answer"):
        Probe().call(serve(answer), 105)


def test_nobody_there_is_an_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ProbeError, match="refused"):
            Probe().call(f"127.0.0.1:{unused.getsockname()[1]}", 105)


def test_a_route_counts_brokers(serve: Serve) -> None:
    body = b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:1"}}],"queueDatas":[{"brokerName":"broker-a"}]}'
    address = serve(frame(b'{"code":0,"flag":1}', body))
    assert Probe().has_route(address, "orders", 1)
    assert not Probe().has_route(address, "orders", 2)


def test_the_cluster_is_read_though_its_keys_are_bare(serve: Serve) -> None:
    addresses = b'{0:"127.0.0.1:10911",1:"127.0.0.1:10921"}'
    body = b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":' + addresses + b',"brokerName":"broker-a"}}}'
    brokers = Probe().registered_brokers(serve(frame(b'{"code":0,"flag":1}', body)))
    assert brokers == {"broker-a": {0: "127.0.0.1:10911", 1: "127.0.0.1:10921"}}


def test_a_body_that_is_something_else_is_an_error(serve: Serve) -> None:
    with pytest.raises(ProbeError, match="did not answer"):
        Probe().registered_brokers(serve(frame(b'{"code":0,"flag":1}', b"[]")))


def test_a_refusal_is_an_error_with_its_reason(serve: Serve) -> None:
    address = serve(frame(b'{"code":16,"flag":1,"remark":"no rights"}'))
    with pytest.raises(ProbeError, match="answered 16: no rights"):
        Probe().ask(address, 17)
