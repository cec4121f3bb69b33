"""The control port's paths: who may call which, and what each answers, over anything that can be asked.

One worker process and a parent of several are asked the same questions (`Control`), so whoever calls need not know
which of the two it talks to.
"""

from typing import TYPE_CHECKING, Protocol

from rocketfleet.control.http import HttpRequest, Response, json_response, text_response
from rocketfleet.control.messages import Assignment, DrainReport
from rocketfleet.control.token import Access, Token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Unavailable(Exception):
    """Not now; the message says why. `status` is HTTP's."""

    def __init__(self, sentence: str, status: int = 503) -> None:
        super().__init__(sentence)
        self.status = status


class Control(Protocol):
    """What can be asked of a worker. Each may raise Unavailable."""

    async def health(self) -> list[str]:
        """Why it should be restarted; empty if it is well."""

    async def readiness(self) -> list[str]:
        """Why it is not ready; empty if it is."""

    async def metrics(self) -> tuple[str, bytes]:
        """Content type and text."""

    async def assignment(self) -> Assignment: ...

    async def rebalance(self) -> Assignment:
        """Do a round, then answer as `assignment`."""

    async def drain(self) -> DrainReport:
        """Drain, and say where each queue stands."""


class Endpoints:
    """Answers requests. `control` may be replaced at any time: a worker that has started is asked otherwise."""

    def __init__(self, control: Control, token: Token) -> None:
        self.control = control
        self._token = token
        self._paths: dict[str, tuple[str, Access, Callable[[], Awaitable[Response]]]] = {
            "/healthz": ("GET", Access.OPEN, self._health),
            "/readyz": ("GET", Access.OPEN, self._readiness),
            "/metrics": ("GET", Access.OPEN, self._metrics),
            "/assignment": ("GET", Access.READ, self._assignment),
            "/rebalance": ("POST", Access.CHANGE, self._rebalance),
            "/drain": ("POST", Access.CHANGE, self._drain),
        }

    async def answer(self, request: HttpRequest) -> Response:
        if request.path not in self._paths:
            return text_response(404, f"there is no {request.path} here: there are {', '.join(self._paths)}")
        method, access, answer = self._paths[request.path]
        if request.method != method and not (method == "GET" and request.method == "HEAD"):
            refused = text_response(405, f"{request.path} is called with {method}")
            return Response(refused.status, refused.body, refused.content_type, (("Allow", method),))
        given = request.headers.get("authorization")
        refusal = self._token.refusal(access, given, request.peer, method=request.method, path=request.path)
        if refusal is not None:
            return text_response(*refusal)
        try:
            return await answer()
        except Unavailable as error:
            return text_response(error.status, str(error))

    async def _health(self) -> Response:
        return _verdict(await self.control.health(), "ok")

    async def _readiness(self) -> Response:
        return _verdict(await self.control.readiness(), "ready")

    async def _metrics(self) -> Response:
        content_type, text = await self.control.metrics()
        return Response(200, text, content_type)

    async def _assignment(self) -> Response:
        return _answer(await self.control.assignment())

    async def _rebalance(self) -> Response:
        return _answer(await self.control.rebalance())

    async def _drain(self) -> Response:
        return _answer(await self.control.drain())


def _answer(message: Assignment | DrainReport) -> Response:
    return json_response(200, message.to_json())


def _verdict(problems: list[str], well: str) -> Response:
    return text_response(503, "\n".join(problems)) if problems else text_response(200, well)
