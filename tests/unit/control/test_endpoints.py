"""Paths, methods and who may call them."""

import json

import pytest

from rocketfleet.control.endpoints import Endpoints, Unavailable
from rocketfleet.control.http import HttpRequest, Response
from rocketfleet.control.messages import Assignment, DrainReport
from rocketfleet.control.token import Token


class Calm:
    """A Control that is well, and notes what it was told to do."""

    def __init__(self, problems: list[str] | None = None) -> None:
        self.problems = problems or []
        self.done: list[str] = []

    async def health(self) -> list[str]:
        return self.problems

    async def readiness(self) -> list[str]:
        return self.problems

    async def metrics(self) -> tuple[str, bytes]:
        return "text/x", b"m"

    async def assignment(self) -> Assignment:
        return Assignment(("me",))

    async def rebalance(self) -> Assignment:
        self.done.append("rebalance")
        raise Unavailable("not now", status=409)

    async def drain(self) -> DrainReport:
        self.done.append("drain")
        return DrainReport(confirmed=True, queues=())


async def ask(control: Calm, method: str, path: str, token: str | None = None, given: str | None = None) -> Response:
    headers = {} if given is None else {"authorization": f"Bearer {given}"}
    return await Endpoints(control, Token(token)).answer(HttpRequest(method, path, headers, "127.0.0.1"))


async def test_probes() -> None:
    assert (await ask(Calm(), "GET", "/healthz")).status == 200
    assert (await ask(Calm(), "HEAD", "/readyz")).status == 200
    ill = Calm(["first.", "second."])
    for path in ("/healthz", "/readyz"):
        response = await ask(ill, "GET", path)
        assert response.status == 503
        assert response.body == b"first.\nsecond.\n"


async def test_metrics_and_assignment() -> None:
    response = await ask(Calm(), "GET", "/metrics")
    assert (response.body, response.content_type) == (b"m", "text/x")
    response = await ask(Calm(), "GET", "/assignment")
    assert json.loads(response.body) == Assignment(("me",)).to_json()
    assert json.loads(response.body)["version"] == 1
    assert (await ask(Calm(), "GET", "/assignment", "t")).status == 401
    assert (await ask(Calm(), "GET", "/assignment", "t", "t")).status == 200


@pytest.mark.parametrize("path", ["/drain", "/rebalance"])
async def test_nothing_is_changed_without_the_token(path: str) -> None:
    control = Calm()
    assert (await ask(control, "POST", path)).status == 403
    assert (await ask(control, "POST", path, None, "t")).status == 403
    assert (await ask(control, "POST", path, "t")).status == 401
    assert (await ask(control, "POST", path, "t", "x")).status == 403
    assert (await ask(control, "GET", path, "t", "t")).status == 405
    assert control.done == []
    await ask(control, "POST", path, "t", "t")
    assert control.done == [path[1:]]


async def test_what_is_not_available_says_why() -> None:
    response = await ask(Calm(), "POST", "/rebalance", "t", "t")
    assert (response.status, response.body) == (409, b"not now\n")


async def test_other_paths_and_methods() -> None:
    response = await ask(Calm(), "GET", "/")
    assert response.status == 404
    assert b"/healthz" in response.body
    response = await ask(Calm(), "POST", "/healthz")
    assert response.status == 405
    assert ("Allow", "GET") in response.headers
