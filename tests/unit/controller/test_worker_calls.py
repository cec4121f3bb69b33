"""Calls to control ports: what a worker answers is understood, and whatever else comes back is a sentence."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rocketfleet.api.status import SparkProgress
from rocketfleet.controller.worker_calls import WorkerCalls
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.control_server import ControlServer
from rocketfleet.worker.http import Request, Response, json_response, text_response
from rocketfleet.worker.http_call import CallFailed

QUEUE = {"topic": "orders", "broker": "broker-a", "clientId": "a"}


@asynccontextmanager
async def port(answer: Callable[[Request], Response]) -> AsyncIterator[str]:
    async def reply(request: Request) -> Response:
        return answer(request)

    server = ControlServer(reply)
    host, number = await server.start("127.0.0.1", 0)
    try:
        yield f"{host}:{number}"
    finally:
        await server.close(1.0)


async def test_an_assignment_has_owners_for_what_is_owned() -> None:
    states = ["Owned", "Suspended", "ConfirmedOnce", "Wanted", "Leaving", "Settling"]
    queues = [{**QUEUE, "queueId": number, "state": state} for number, state in enumerate(states)]
    content = {
        "clientIds": ["a"],
        "phase": "Running",
        "ready": True,
        "settled": False,
        "members": ["a", "b"],
        "queues": queues,
    }
    heard: list[Request] = []

    def answer(request: Request) -> Response:
        heard.append(request)
        return json_response(200, content)

    async with port(answer) as address:
        found = await WorkerCalls().assignment(address, "secret")
    assert found.joined
    assert found.members == {"a", "b"}
    assert set(found.owners) == {MessageQueue("orders", "broker-a", number) for number in range(3)}
    assert heard[0].headers["authorization"] == "Bearer secret"


async def test_a_driver_says_how_its_query_gets_on() -> None:
    content: dict[str, Any] = {
        "clientIds": ["a"], "phase": "Running", "ready": True, "settled": True, "members": ["a"], "queues": [],
        "progress": {"batch": 7, "messages": 100, "executors": None, "lost": 0, "newerThanUs": 1},
    }  # fmt: skip
    async with port(lambda _: json_response(200, content)) as address:
        found = await WorkerCalls().assignment(address, None)
        assert found.progress == SparkProgress(batch=7, messages=100, lost=0)
        content["progress"] = {"batch": "many"}
        with pytest.raises(CallFailed, match="not what a worker answers"):
            await WorkerCalls().assignment(address, None)


async def test_a_drain_says_where_each_queue_stands() -> None:
    content = {"confirmed": True, "seconds": 0.5, "queues": [{**QUEUE, "queueId": 1, "offset": 7}]}
    async with port(lambda _: json_response(200, content)) as address:
        outcome = await WorkerCalls().drain(address, "secret", 5.0)
    assert outcome.confirmed
    assert outcome.offsets == {MessageQueue("orders", "broker-a", 1): 7}
    assert outcome.seconds == 0.5


Call = Callable[[WorkerCalls, str], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "assignment": lambda calls, address: calls.assignment(address, "secret"),
    "drain": lambda calls, address: calls.drain(address, "secret", 2.0),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "response",
    [
        text_response(503, "the worker is joining"),
        text_response(200, "not JSON"),
        json_response(200, []),
        json_response(200, {}),
        json_response(200, {"queues": 5, "confirmed": True, "clientIds": []}),
        Response(200, json.dumps({"queues": [{}], "confirmed": 1, "clientIds": []}).encode()),
    ],
)
async def test_any_other_answer_is_a_failure_with_a_sentence(call: str, response: Response) -> None:
    async with port(lambda _: response) as address:
        with pytest.raises(CallFailed, match=address) as failure:
            await CALLS[call](WorkerCalls(), address)
    assert "secret" not in str(failure.value)


async def test_nobody_there_is_a_failure_too() -> None:
    async with port(lambda _: text_response(200, "ok")) as address:
        assert await WorkerCalls().ready(address)
    for wrong in (address, "nonsense", "127.0.0.1:99999999"):
        with pytest.raises(CallFailed):
            await WorkerCalls().assignment(wrong, None)
        assert not await WorkerCalls().ready(wrong)
