"""Calls to control ports: what a worker answers is understood, and whatever else comes back is a sentence."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from rocketfleet.control.endpoints import Endpoints
from rocketfleet.control.http import HttpRequest, Response, json_response, text_response
from rocketfleet.control.http_call import CallFailed
from rocketfleet.control.messages import QueryProgress
from rocketfleet.control.proof import Proof
from rocketfleet.control.server import ControlServer
from rocketfleet.control.token import Token
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.starting import Starting

QUEUE = {"topic": "orders", "broker": "broker-a", "clientId": "a"}


@asynccontextmanager
async def port(answer: Callable[[HttpRequest], Response]) -> AsyncIterator[str]:
    async def reply(request: HttpRequest) -> Response:
        return answer(request)

    async with port_of(reply) as address:
        yield address


@asynccontextmanager
async def port_of(answer: Callable[[HttpRequest], Awaitable[Response]]) -> AsyncIterator[str]:
    server = ControlServer(answer)
    host, number = await server.start("127.0.0.1", 0)
    try:
        yield f"{host}:{number}"
    finally:
        await server.close(1.0)


async def test_an_assignment_has_owners_for_what_is_owned() -> None:
    states = ["Owned", "Suspended", "ConfirmedOnce", "Standby", "Wanted", "Leaving", "Settling", "NewlyInvented"]
    queues = [{**QUEUE, "queueId": number, "state": state} for number, state in enumerate(states)]
    content = {
        "clientIds": ["a"],
        "phase": "Running",
        "ready": True,
        "settled": False,
        "members": ["a", "b"],
        "queues": queues,
    }
    heard: list[HttpRequest] = []

    def answer(request: HttpRequest) -> Response:
        heard.append(request)
        return json_response(200, content)

    async with port(answer) as address:
        found = await WorkerCalls().assignment(address, "secret")
    assert found.joined
    assert found.members == ("a", "b")
    assert set(found.owners) == {MessageQueue("orders", "broker-a", number) for number in range(4)}
    assert [found.states[MessageQueue("orders", "broker-a", n)] for n in range(8)] == [{state} for state in states]
    assert heard[0].headers["authorization"] == "Bearer secret"


async def test_a_driver_says_how_its_query_gets_on() -> None:
    content: dict[str, Any] = {
        "clientIds": ["a"], "phase": "Running", "ready": True, "settled": True, "members": ["a"], "queues": [],
        "progress": {"batch": 7, "messages": 100, "executors": None, "lost": 0, "newerThanUs": 1},
    }  # fmt: skip
    async with port(lambda _: json_response(200, content)) as address:
        found = await WorkerCalls().assignment(address, None)
        assert found.progress == QueryProgress(batch=7, messages=100, lost=0)
        content["progress"] = {"batch": "many"}
        with pytest.raises(CallFailed, match="not what a worker answers"):
            await WorkerCalls().assignment(address, None)


async def test_a_worker_of_another_version_is_understood() -> None:
    """Fields that are new are passed over; of one that is missing, that is assumed from which nothing follows."""
    content: dict[str, Any] = {"clientIds": ["a"], "queues": [{**QUEUE, "queueId": 1, "clientId": "a", "state": "New"}]}
    async with port(lambda _: json_response(200, {**content, "newField": [1]})) as address:
        found = await WorkerCalls().assignment(address, None)
    assert (found.version, found.client_ids, found.joined, found.ready, found.settled) == (
        0,
        ("a",),
        False,
        False,
        False,
    )
    assert found.owners == {}
    async with port(lambda _: json_response(200, {**content, "version": 7})) as address:
        assert (await WorkerCalls().assignment(address, None)).version == 7
    async with port(lambda _: json_response(200, {"confirmed": True, "queues": [], "newField": 1})) as address:
        outcome = await WorkerCalls().drain(address, None, 5.0)
    assert (outcome.confirmed, outcome.seconds) == (True, None)


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


class Door:
    """A control port that wants the token itself, as workers did before there were proofs, or that takes proofs."""

    def __init__(self, *, older: bool) -> None:
        self.older = older
        self.heard: list[str] = []

    def answer(self, request: HttpRequest) -> Response:
        scheme = request.headers["authorization"].split()[0]
        self.heard.append(scheme)
        if self.older and scheme != "Bearer":
            return text_response(401, "this call needs the control token: send it as 'Authorization: Bearer …'")
        return json_response(200, {"clientIds": ["a"], "phase": "Running", "ready": True, "queues": []})


async def test_a_worker_that_is_older_than_proofs_is_sent_the_token() -> None:
    calls, door = WorkerCalls(), Door(older=True)
    async with port(door.answer) as address:
        for _ in range(2):
            assert (await calls.assignment(address, Proof("secret", "uid-1", "sha256:old"))).client_ids == ("a",)
    assert door.heard == ["Proof", "Bearer"] * 2


async def test_nobody_is_believed_to_be_older_whose_image_takes_proofs() -> None:
    calls, door = WorkerCalls(), Door(older=False)
    async with port(door.answer) as address:
        await calls.assignment(address, Proof("secret", "uid-1", "sha256:new"))
        door.older = True
        with pytest.raises(CallFailed, match="401"):
            await calls.assignment(address, Proof("secret", "uid-2", "sha256:new"))
    assert door.heard == ["Proof", "Proof"], "the token was not sent"


async def test_nobody_is_sent_the_token_whose_image_is_not_known() -> None:
    door = Door(older=True)
    async with port(door.answer) as address:
        with pytest.raises(CallFailed, match="401"):
            await WorkerCalls().assignment(address, Proof("secret", "uid-1"))
    assert door.heard == ["Proof"]


async def test_a_worker_whose_clock_is_wrong_is_called_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    for there in (1_000_000.0, 3_000_000.0):
        endpoints = Endpoints(Starting("g", "me", 60.0), Token("secret", pod="uid-0", wall=partial(float, there)))
        async with port_of(endpoints.answer) as address:
            calls = WorkerCalls(lambda: 2_000_000.0)
            for _ in range(2):
                assert (await calls.drain(address, Proof("secret", "uid-0"), 5.0)).confirmed
            with pytest.raises(CallFailed, match="403"):
                await calls.drain(address, Proof("other", "uid-0"), 5.0)
    ahead, behind = (record.getMessage() for record in caplog.records)  # once for each pod
    assert "1000000 s behind this operator's" in ahead
    assert "1000000 s ahead of this operator's" in behind


async def test_a_stranger_gets_no_proof_for_a_time_he_likes() -> None:
    heard: list[str] = []
    told = Proof("secret", "uid-1").authorization("clock", "x", 3_000_000.0).removeprefix("Proof ")

    def answer(request: HttpRequest) -> Response:
        heard.append(request.headers["authorization"])
        return text_response(403, f"Here it is {told}")

    async with port(answer) as address:
        with pytest.raises(CallFailed, match="403"):
            await WorkerCalls().drain(address, Proof("secret", "uid-0"), 5.0)
    assert len(heard) == 1
