"""The little HTTP there is, and its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.control.http import (
    MAX_BODY,
    MAX_HEADERS,
    BadRequest,
    Response,
    encode_response,
    json_response,
    parse_answer,
    parse_head,
    text_response,
)


def refused(head: bytes) -> int:
    with pytest.raises(BadRequest) as raised:
        parse_head(head)
    assert str(raised.value)
    return raised.value.status


def test_a_request() -> None:
    request = parse_head(b"POST /drain?x=1 HTTP/1.1\r\nHost: a\r\nAUTHORIZATION:  Bearer t \r\nContent-Length: 5", "p")
    assert (request.method, request.path, request.peer, request.content_length) == ("POST", "/drain", "p", 5)
    assert request.headers["authorization"] == "Bearer t"
    assert parse_head(b"GET / HTTP/1.0").content_length == 0


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET",
        b"GET /",
        b"get / HTTP/1.1",
        b"GET  / HTTP/1.1",
        b"GET / HTTP/2",
        b"GET http://x/ HTTP/1.1",
        b"GET /\x00 HTTP/1.1",
        b"GET /\xc3\xa4 HTTP/1.1",
        b"GET /" + b"a" * 1024 + b" HTTP/1.1",
        b"GET / HTTP/1.1\r\nno colon",
        b"GET / HTTP/1.1\r\nName : value",
        b"GET / HTTP/1.1\r\nA: b\r\n folded",
        b"GET / HTTP/1.1\r\nA: b\nC: d",
        b"GET / HTTP/1.1\r\n: value",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1",
        b"GET / HTTP/1.1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b",
        b"GET / HTTP/1.1\r\nContent-Length: -1",
        b"GET / HTTP/1.1\r\nContent-Length: +1",
        b"GET / HTTP/1.1\r\nContent-Length: 1_0",
        b"GET / HTTP/1.1\r\nContent-Length: \xb2",
        b"\x16\x03\x01\x02\x00\x01",  # somebody speaks TLS
    ],
)
def test_what_is_odd_is_refused(head: bytes) -> None:
    assert refused(head) == 400


def test_limits() -> None:
    assert refused(f"POST / HTTP/1.1\r\nContent-Length: {MAX_BODY + 1}".encode()) == 413
    assert refused(b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000) == 413
    assert refused(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked") == 501
    assert refused(b"GET / HTTP/1.1\r\n" + b"\r\n".join([b"A: b"] * (MAX_HEADERS + 1))) == 431
    assert parse_head(b"GET / HTTP/1.1\r\n" + b"\r\n".join([b"A: b"] * MAX_HEADERS)).headers == {"a": "b"}


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda tail: b"GET / HTTP/1.1\r\n" + tail)))
def test_whatever_is_sent_is_a_request_or_refused(head: bytes) -> None:
    try:
        request = parse_head(head)
    except BadRequest as error:
        assert 400 <= error.status < 600  # noqa: PT017 - either is right
    else:
        assert 0 <= request.content_length <= MAX_BODY


@given(st.sampled_from([200, 404, 503]), st.binary(max_size=300))
def test_an_answer_is_read_as_it_was_written(status: int, body: bytes) -> None:
    response = Response(status, body, "application/json")
    assert parse_answer(encode_response(response)) == response


def test_answers_end_with_a_line_end_and_close_the_connection() -> None:
    assert text_response(200, "ok").body == b"ok\n"
    assert json_response(200, {"a": "ä"}).body.decode() == '{"a": "ä"}\n'
    data = encode_response(text_response(401, "no"))
    assert data.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
    assert b"\r\nConnection: close\r\n" in data
    assert encode_response(text_response(200, "ok"), with_body=False).endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "data", [b"", b"x\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"]
)
def test_half_an_answer_is_none(data: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_answer(data)
