"""Users and permissions (ACL 2.0) at one broker, for tests of what a secured one refuses. The product changes none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from rocketfleet.client.requests.calls import Answer, Caller, ask
from rocketfleet.wire import fastjson
from rocketfleet.wire.bodies import Body
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request
from rocketfleet.wire.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class User(Body):
    """A user. `user_type` is Normal or Super, `user_status` enable or disable; brokers answer without the password."""

    username: str = ""
    password: str | None = field(default=None, repr=False)
    user_type: str | None = None
    user_status: str | None = None


@dataclass(frozen=True, slots=True)
class PolicyEntry(Body):
    """What may be done with a resource: `Topic:orders*`, actions such as Pub, Sub, Get, and Allow or Deny."""

    resource: str = ""
    actions: tuple[str, ...] = ()
    source_ips: tuple[str, ...] | None = None
    decision: str = "Allow"


@dataclass(frozen=True, slots=True)
class Policy(Body):
    """Entries of one kind, Custom or Default."""

    policy_type: str | None = None
    entries: tuple[PolicyEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Acl(Body):
    """The policies of a subject, `User:name`."""

    subject: str = ""
    policies: tuple[Policy, ...] = ()


async def create_user(caller: Caller, address: str, user: User, *, timeout: float | None = None) -> None:
    """Create a user."""
    command = request(RequestCode.AUTH_CREATE_USER, {"username": user.username}, user.encode())
    await ask(caller, address, command, timeout)


async def update_user(caller: Caller, address: str, user: User, *, timeout: float | None = None) -> None:
    """Change what is given of a user: the password, the type or the status."""
    command = request(RequestCode.AUTH_UPDATE_USER, {"username": user.username}, user.encode())
    await ask(caller, address, command, timeout)


async def delete_user(caller: Caller, address: str, username: str, *, timeout: float | None = None) -> None:
    """Delete a user, and what it may do."""
    await ask(caller, address, request(RequestCode.AUTH_DELETE_USER, {"username": username}), timeout)


async def users(caller: Caller, address: str, name: str = "", *, timeout: float | None = None) -> tuple[User, ...]:
    """The users whose name contains a text."""
    answer = await ask(caller, address, request(RequestCode.AUTH_LIST_USER, {"filter": name}), timeout)
    return _list(answer, User.from_json)


async def create_acl(
    caller: Caller, address: str, subject: str, entries: Iterable[PolicyEntry], *, timeout: float | None = None
) -> None:
    """Let a subject (`User:name`) do things."""
    body = Acl(subject=subject, policies=(Policy(entries=tuple(entries)),))
    command = request(RequestCode.AUTH_CREATE_ACL, {"subject": subject}, body.encode())
    await ask(caller, address, command, timeout)


async def delete_acl(
    caller: Caller, address: str, subject: str, resource: str | None = None, *, timeout: float | None = None
) -> None:
    """Take away what a subject may do, with one resource or altogether."""
    command = request(RequestCode.AUTH_DELETE_ACL, {"subject": subject, "resource": resource})
    await ask(caller, address, command, timeout)


async def acls(
    caller: Caller, address: str, subject: str = "", resource: str = "", *, timeout: float | None = None
) -> tuple[Acl, ...]:
    """The policies of the subjects and resources whose names contain these texts."""
    command = request(RequestCode.AUTH_LIST_ACL, {"subjectFilter": subject, "resourceFilter": resource})
    return _list(await ask(caller, address, command, timeout), Acl.from_json)


def _list(answer: Answer, read: Callable[[object], Item]) -> tuple[Item, ...]:
    """These answers are JSON arrays, which no body class stands for."""

    def decode(data: bytes) -> tuple[Item, ...]:
        value = fastjson.loads(data) if data else []
        if not isinstance(value, list):
            raise BodyError("an array was expected")
        return tuple(read(item) for item in value)

    return answer.body(decode)
