"""The control port's sockets: what it answers, and what it does not put up with."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from rocketfleet.worker import control_server
from rocketfleet.worker.control_server import MOST_CONNECTIONS, ControlServer, ControlThread
from rocketfleet.worker.http import MAX_HEAD, Request, Response, parse_answer, text_response
from rocketfleet.worker.http_call import CallFailed, call

Answer = Callable[[Request], Awaitable[Response]]


async def echo(request: Request) -> Response:
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


async def test_what_the_answer_raises_is_told_as_a_bug_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: Request) -> Response:
        raise ValueError("secret detail")

    async with serving(fail) as (_, port):
        response = await call(f"127.0.0.1:{port}", "GET", "/x", "", 5.0)
    assert response.status == 500
    assert b"secret" not in response.body
    assert "secret detail" in caplog.text


async def test_closing_waits_for_answers_under_way_but_not_for_those_who_did_not_ask() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> Response:
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
    async def slow(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(slow) as (_, port):
        with pytest.raises(CallFailed, match="not answered"):
            await call(f"127.0.0.1:{port}", "GET", "/", "", 0.05)
