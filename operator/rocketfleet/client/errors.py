"""What can go wrong between us and RocketMQ, one type for each thing that a caller may want to treat differently.

Every error that belongs to a request names the request, the peer and, where there was an answer, its code. No error
carries a request's fields or body: credentials and messages have no business in a log.

The one question callers must be able to answer is "may the peer have acted on it?". `ConnectError`: no, the request
never left. `ResponseError`: the peer says so itself. `ConnectionLost`, `RequestTimeout`, `ProtocolError`: nobody knows.
"""

from __future__ import annotations

from typing import Any

from rocketfleet.base.counting import counted
from rocketfleet.wire.codes import RequestCode, ResponseCode, request_name, response_name

_LONGEST_REMARK = 2000
_TO_NAME_SERVERS = frozenset({RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO})


class RocketMQError(Exception):
    """The root of everything that this client raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default rebuilds an exception from its message alone and would fail on our constructors.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[RocketMQError], args: tuple[Any, ...], facts: dict[str, Any]) -> RocketMQError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


def _named(name: str, code: int) -> str:
    """`GET_MAX_OFFSET (30)`; a code that we do not know is just its number."""
    return f"code {code}" if name == str(code) else f"{name} ({int(code)})"


def _request(code: int) -> str:
    return _named(request_name(code), code)


class ClientClosed(RocketMQError):
    """The client was closed, so it makes no more calls."""

    def __init__(self) -> None:
        super().__init__("the client is closed: make a new one to go on")


class ConnectError(RocketMQError):
    """No connection to the peer; the request was not sent. `retry_in` is when the next attempt is due, in seconds."""

    def __init__(self, peer: str, reason: str, retry_in: float | None = None) -> None:
        self.peer = peer
        self.reason = reason
        self.retry_in = retry_in
        super().__init__(f"cannot connect to {peer}: {reason}")


class BackingOff(ConnectError):
    """The peer failed a moment ago and is left alone until the next attempt is due; nothing was tried this time."""

    def __init__(self, peer: str, reason: str, retry_in: float, failures: int) -> None:
        self.failures = failures
        times = "once" if failures == 1 else f"{failures} times in a row"
        super().__init__(peer, f"it failed {times} and is left alone for now; last: {reason}", retry_in)


class ConnectionLost(RocketMQError):
    """The connection ended while a request was under way. The peer may have acted on it."""

    def __init__(self, peer: str, reason: str, request_code: int | None = None) -> None:
        self.peer = peer
        self.reason = reason
        self.request_code = request_code
        what = "" if request_code is None else f" during {_request(request_code)}; the peer may have acted on it"
        super().__init__(f"connection to {peer} lost: {reason}{what}")


class RequestTimeout(RocketMQError, TimeoutError):
    """No answer in time. The peer may have acted on the request, or still may."""

    def __init__(self, peer: str, request_code: int, timeout: float) -> None:
        self.peer = peer
        self.request_code = request_code
        self.timeout = timeout
        super().__init__(f"{_request(request_code)} to {peer}: no answer within {timeout:.3g} s")


class ProtocolError(RocketMQError):
    """The peer sent what the protocol does not allow, or a body that is not what it should be."""

    def __init__(self, peer: str, reason: str, request_code: int | None = None) -> None:
        self.peer = peer
        self.reason = reason
        self.request_code = request_code
        what = peer if request_code is None else f"{_request(request_code)} to {peer}"
        super().__init__(f"{what}: {reason}")


class ResponseError(RocketMQError):
    """The peer answered, and the answer is no. `code` and `remark` are the peer's own words."""

    def __init__(self, code: int, remark: str | None, peer: str, request_code: int) -> None:
        self.code = code
        self.remark = remark
        self.peer = peer
        self.request_code = request_code
        words = " ".join((remark or "").split())
        if len(words) > _LONGEST_REMARK:
            words = words[:_LONGEST_REMARK] + "…"
        tail = (f": {words}" if words else "") + _advice(code, words, request_code)
        super().__init__(f"{_request(request_code)} to {peer} failed with {_named(response_name(code), code)}{tail}")


def _advice(code: int, words: str, request_code: int) -> str:
    """What the peer's words leave out, where it is known what they mean."""
    if code == ResponseCode.NO_PERMISSION and "username cannot be null" in words:
        return (
            " (this broker asks for credentials and got none: give --credentials-file, or cluster.credentials in a "
            "manifest)"
        )
    if code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED and request_code in _TO_NAME_SERVERS:
        return " (this is not a name server; is it a broker's port?)"
    return ""


class TopicNotExist(ResponseError):
    """No such topic at this broker or name server."""


class GroupNotExist(ResponseError):
    """No such subscription group at this broker."""


class SystemBusy(ResponseError):
    """The broker sheds load (SYSTEM_BUSY, FLOW_CONTROL); try again a little later or at another broker."""


class NoPermission(ResponseError):
    """Wrong credentials, or the user may not do this, or the topic's or broker's permission bits forbid it."""


class NotFound(ResponseError):
    """The peer has nothing of that name, key or offset (QUERY_NOT_FOUND)."""


class ConsumerNotOnline(ResponseError):
    """Nobody of that group, or not that client, is connected to the broker."""


class RequestNotSupported(ResponseError):
    """The peer is too old or not of the kind that answers this request."""


_BY_CODE: dict[int, type[ResponseError]] = {
    ResponseCode.SYSTEM_BUSY: SystemBusy,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: RequestNotSupported,
    ResponseCode.VERSION_NOT_SUPPORTED: RequestNotSupported,
    ResponseCode.NO_PERMISSION: NoPermission,
    ResponseCode.TOPIC_NOT_EXIST: TopicNotExist,
    ResponseCode.QUERY_NOT_FOUND: NotFound,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: GroupNotExist,
    ResponseCode.CONSUMER_NOT_ONLINE: ConsumerNotOnline,
    ResponseCode.FLOW_CONTROL: SystemBusy,
}


def response_error(code: int, remark: str | None, peer: str, request_code: int) -> ResponseError:
    """The error for an answer, of the type that belongs to its code."""
    return _BY_CODE.get(code, ResponseError)(code, remark, peer, request_code)


class NoNameServer(RocketMQError):
    """Every name server failed. `errors` has the reason of each, by address."""

    def __init__(self, errors: dict[str, RocketMQError]) -> None:
        self.errors = errors
        super().__init__("no name server answered: " + "; ".join(str(error) for error in errors.values()))


class NoRoute(RocketMQError):
    """There is no way to the topic: it does not exist, or no broker that has it is registered."""

    def __init__(self, topic: str, reason: str) -> None:
        self.topic = topic
        self.reason = reason
        super().__init__(f"no route to topic {topic}: {reason}")


class NoBroker(RocketMQError):
    """The broker is not known, or has no address of the kind that the call needs."""

    def __init__(self, broker: str, reason: str) -> None:
        self.broker = broker
        self.reason = reason
        super().__init__(f"no address for broker {broker}: {reason}")


class PartialFailure(RocketMQError):
    """Several brokers failed. `errors` has the reason of each."""

    def __init__(self, errors: dict[str, RocketMQError]) -> None:
        self.errors = errors
        super().__init__(
            f"{counted(len(errors), 'broker')} failed: " + "; ".join(f"{k}: {e}" for k, e in errors.items())
        )
