"""The smallest remoting client: its bytes, and how it fails."""

import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from rocketfleet.devbroker.errors import ProbeError
from rocketfleet.devbroker.probe import Admin, Answer, Probe, encode, parse_cluster_info, quote_bare_keys

Serve = Callable[[bytes], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
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
                    connection.recv(65536)
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


def test_a_request_is_one_frame() -> None:
    request = encode(17, {"topic": "orders", "order": True, "perm": 6}, b"body")
    assert int.from_bytes(request[:4]) == len(request) - 4
    assert request.endswith(b"body")
    header = header_of(request)
    assert header["code"] == 17
    assert header["extFields"] == {"topic": "orders", "order": "true", "perm": "6"}


def test_a_request_is_signed_over_sorted_values_and_body() -> None:
    header = header_of(encode(17, {"b": "2", "a": "1"}, b"body", Admin("root", "secret")))
    fields = header["extFields"]
    assert isinstance(fields, dict)
    assert fields["AccessKey"] == "root"
    # printf root12body | openssl dgst -sha1 -hmac secret -binary | base64
    assert fields["Signature"] == "bQpCKorIZc816XpJY1172zlD0KQ="


def test_an_answer_is_taken_apart(serve: Serve) -> None:
    address = serve(frame(b'{"code":17,"remark":"no such topic"}', b"{}"))
    assert Probe().call(address, 105) == Answer(17, "no such topic", b"{}")
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
    address = serve(frame(b'{"code":0}', body))
    assert Probe().has_route(address, "orders", 1)
    assert not Probe().has_route(address, "orders", 2)


def test_the_cluster_is_read_though_its_keys_are_bare() -> None:
    addresses = b'{0:"127.0.0.1:10911",1:"127.0.0.1:10921"}'
    body = b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":' + addresses + b',"brokerName":"broker-a"}}}'
    assert parse_cluster_info(body) == {"broker-a": {0: "127.0.0.1:10911", 1: "127.0.0.1:10921"}}


def test_keys_in_quotes_stay_as_they_are() -> None:
    text = '{"1":{2:"a:3"},"b":[4]}'
    assert json.loads(quote_bare_keys(text)) == {"1": {"2": "a:3"}, "b": [4]}
