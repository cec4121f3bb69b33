"""The control port's sockets: what it answers, and what it does not put up with."""

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from rocketfleet.control import server as control_server
from rocketfleet.control.http import MAX_HEAD, HttpRequest, Response, parse_answer, text_response
from rocketfleet.control.http_call import CallFailed, call
from rocketfleet.control.server import MOST_CONNECTIONS, ControlServer, ControlThread

Answer = Callable[[HttpRequest], Awaitable[Response]]


async def echo(request: HttpRequest) -> Response:
    return text_response(200, f"{request.method} {request.path} {request.headers.get('authorization')} {request.peer}")


@contextlib.asynccontextmanager
async def serving(answer: Answer = echo) -> AsyncIterator[tuple[ControlServer, int]]:
    server = ControlServer(answer)
    _, port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.close(0.0)


async def raw(port: int, data: bytes, *, end: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    if end:
        writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_call_and_its_answer() -> None:
    async with serving() as (_, port):
        response = await call(f"127.0.0.1:{port}", "POST", "/drain", "t", 5.0)
    assert response.status == 200
    assert response.body == b"POST /drain Bearer t 127.0.0.1\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_every_address_is_that_of_both_families(host: str) -> None:
    server = ControlServer(echo)
    _, port = await server.start(host, 0)
    try:
        for loopback in ("127.0.0.1", "[::1]"):
            assert (await call(f"{loopback}:{port}", "GET", "/healthz", "t", 5.0)).status == 200
    finally:
        await server.close(0.0)


@pytest.mark.parametrize("refusal", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
async def test_every_address_is_that_of_ipv4_where_there_is_no_other(
    refusal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = socket.create_server

    def without_ipv6(address: tuple[str, int], *, family: int = socket.AF_INET, **more: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(refusal, "no IPv6")
        return make(address, family=family, **more)

    monkeypatch.setattr(socket, "create_server", without_ipv6)
    server = ControlServer(echo)
    host, port = await server.start("::", 0)
    try:
        assert host == "0.0.0.0"
        assert (await call(f"127.0.0.1:{port}", "GET", "/healthz", "t", 5.0)).status == 200
    finally:
        await server.close(0.0)


async def test_a_port_that_is_taken_is_an_error_and_not_another_family() -> None:
    held = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    with held, pytest.raises(OSError, match="use"):
        await ControlServer(echo).start("::", held.getsockname()[1])


async def test_head_is_get_without_the_body() -> None:
    async with serving() as (_, port):
        data = await raw(port, b"HEAD /healthz HTTP/1.1\r\n\r\n")
    assert data.startswith(b"HTTP/1.1 200 ")
    assert data.endswith(b"\r\n\r\n")


async def test_a_body_is_read_and_left() -> None:
    async with serving() as (_, port):
        answer = parse_answer(await raw(port, b"POST / HTTP/1.1\r\nContent-Length: 4096\r\n\r\n" + b"x" * 4096))
    assert answer.status == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * MAX_HEAD + b"\r\n\r\n", 431),
        (b"x" * (10 * MAX_HEAD), 431),
        (b"POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000, 413),
    ],
)
async def test_what_is_too_long_or_odd_is_refused_and_the_refusal_arrives(data: bytes, status: int) -> None:
    async with serving() as (_, port):
        assert parse_answer(await raw(port, data)).status == status


async def test_a_caller_that_dawdles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_server, "REQUEST_SECONDS", 0.05)
    async with serving() as (_, port):
        assert parse_answer(await raw(port, b"GET / HTTP/1.1\r\n")).status == 408
        assert parse_answer(await raw(port, b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nx")).status == 408


async def test_a_caller_that_only_looks_whether_the_port_is_open_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as (_, port):
        assert await raw(port, b"", end=True) == b""
        assert await raw(port, b"GET", end=True) == b""
    assert caplog.records == []


async def test_there_are_only_so_many_connections() -> None:
    async with serving() as (_, port):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_CONNECTIONS)]
        try:
            async with asyncio.timeout(10):
                while (await call(f"127.0.0.1:{port}", "GET", "/", "", 5.0)).status != 503:
                    pass  # the server may not have seen all of them yet
        finally:
            for _, writer in held:
                writer.close()


async def test_callers_that_no_longer_wait_do_not_use_up_the_connections() -> None:
    """A drain may take for ever, and is asked for again and again."""
    asked, cut_off = 0, 0

    async def never(request: HttpRequest) -> Response:
        nonlocal asked, cut_off
        if request.path == "/healthz":
            return text_response(200, "ok")
        asked += 1
        try:
            await asyncio.Event().wait()
        finally:
            cut_off += 1
        raise AssertionError

    async with serving(never) as (_, port):
        for _ in range(MOST_CONNECTIONS):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /drain HTTP/1.1\r\n\r\n")
            await writer.drain()
            writer.close()
        async with asyncio.timeout(10):
            while cut_off < MOST_CONNECTIONS:  # noqa: ASYNC110 - the server has no event for that
                await asyncio.sleep(0.01)
        assert (await call(f"127.0.0.1:{port}", "GET", "/healthz", "", 5.0)).status == 200
    assert asked == MOST_CONNECTIONS


async def test_a_caller_that_sends_more_than_it_should_is_answered() -> None:
    async def soon(request: HttpRequest) -> Response:
        await asyncio.sleep(0.05)
        return text_response(200, "here")

    async with serving(soon) as (_, port):
        assert parse_answer(await raw(port, b"GET / HTTP/1.1\r\n\r\nmore")).status == 200


async def test_what_the_answer_raises_is_told_as_a_bug_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: HttpRequest) -> Response:
        raise ValueError("secret detail")

    async with serving(fail) as (_, port):
        response = await call(f"127.0.0.1:{port}", "GET", "/x", "", 5.0)
    assert response.status == 500
    assert b"secret" not in response.body
    assert "secret detail" in caplog.text


async def test_closing_waits_for_answers_under_way_but_not_for_those_who_did_not_ask() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(request: HttpRequest) -> Response:
        asked.set()
        await may_answer.wait()
        return text_response(200, "at last")

    async with serving(slow) as (server, port):
        _, idle = await asyncio.open_connection("127.0.0.1", port)
        calling = asyncio.create_task(call(f"127.0.0.1:{port}", "POST", "/drain", "", 30.0))
        await asked.wait()
        closing = asyncio.create_task(server.close(30.0))
        await asyncio.sleep(0)
        may_answer.set()
        assert (await calling).body == b"at last\n"
        async with asyncio.timeout(10):
            await closing
        idle.close()
        with pytest.raises(CallFailed):
            await call(f"127.0.0.1:{port}", "GET", "/", "", 1.0)


async def test_in_a_thread_it_answers_while_this_loop_is_stuck() -> None:
    thread = ControlThread(echo)
    _, port = thread.start("127.0.0.1", 0)
    answers: list[Response] = []
    caller = threading.Thread(
        target=lambda: answers.append(asyncio.run(call(f"127.0.0.1:{port}", "GET", "/", "", 5.0)))
    )
    caller.start()
    caller.join()  # blocks this loop
    thread.close(1.0)
    assert [answer.status for answer in answers] == [200]


def test_an_address_that_cannot_be_had_is_an_error_at_once() -> None:
    first, second = ControlThread(echo), ControlThread(echo)
    _, port = first.start("127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match="address already in use"):
            second.start("127.0.0.1", port)
    finally:
        first.close(0.0)


async def test_a_call_that_fails_is_a_sentence() -> None:
    async def slow(request: HttpRequest) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(slow) as (_, port):
        with pytest.raises(CallFailed, match="not answered"):
            await call(f"127.0.0.1:{port}", "GET", "/", "", 0.05)
