"""What a handler's signature says."""

import functools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest
from tests.unit.consumer import typed_only_elsewhere

from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.wire.message import ReceivedMessage


def plain(message: ReceivedMessage) -> None: ...


def untyped(message):  # type: ignore[no-untyped-def]  # that is what is tested
    ...


def batch(messages: list[ReceivedMessage]) -> None: ...


def sequence(messages: Sequence[ReceivedMessage]) -> None: ...


def iterable(messages: Iterable[ReceivedMessage]) -> None: ...


def collection(messages: Collection[ReceivedMessage]) -> None: ...


def bare_list(messages: list) -> None: ...  # type: ignore[type-arg]  # that is what is tested


def as_text(text: str) -> None: ...


def with_default(message: ReceivedMessage, verbose: bool = False) -> None: ...


def anything(*args: Any, **kwargs: Any) -> None: ...


async def asynchronous(message: ReceivedMessage) -> None: ...


async def asynchronous_batch(messages: list[ReceivedMessage]) -> None: ...


class AnObject:
    def __call__(self, message: ReceivedMessage) -> None: ...

    def method(self, messages: list[ReceivedMessage]) -> None: ...

    async def coroutine(self, message: ReceivedMessage) -> None: ...

    @staticmethod
    def static(message: ReceivedMessage) -> None: ...

    @classmethod
    async def of_class(cls, messages: list[ReceivedMessage]) -> None: ...


class AsyncCallable:
    async def __call__(self, messages: list[ReceivedMessage]) -> None: ...


def two(prefix: str, message: ReceivedMessage) -> None: ...


async def async_two(prefix: str, messages: list[ReceivedMessage]) -> None: ...


@pytest.mark.parametrize(
    ("handler", "is_async", "takes_batch"),
    [
        (plain, False, False),
        (untyped, False, False),
        (batch, False, True),
        (sequence, False, True),
        (iterable, False, True),
        (collection, False, True),
        (bare_list, False, True),
        (as_text, False, False),
        (with_default, False, False),
        (anything, False, False),
        (asynchronous, True, False),
        (asynchronous_batch, True, True),
        (AnObject(), False, False),
        (AnObject().method, False, True),
        (AnObject().coroutine, True, False),
        (AnObject.static, False, False),
        (AnObject.of_class, True, True),
        (AsyncCallable(), True, True),
        (functools.partial(two, "x"), False, False),
        (functools.partial(async_two, "x"), True, True),
        (lambda message: None, False, False),
        (typed_only_elsewhere.one, False, False),
        (typed_only_elsewhere.many, False, True),
        ([].append, False, False),
    ],
)
def test_what_a_signature_says(handler: Any, is_async: bool, takes_batch: bool) -> None:
    looked_at = inspect_handler(handler)
    assert (looked_at.is_async, looked_at.takes_batch) == (is_async, takes_batch)
    assert looked_at.call is handler


def test_the_caller_may_say_that_it_is_a_batch() -> None:
    assert inspect_handler(untyped, batch=True).takes_batch
    assert not inspect_handler(batch, batch=False).takes_batch


def no_arguments() -> None: ...


def keyword_only(*, message: ReceivedMessage) -> None: ...


@pytest.mark.parametrize("handler", [no_arguments, two, keyword_only, functools.partial(untyped, "taken")])
def test_what_cannot_take_one_argument_is_refused(handler: Any) -> None:
    with pytest.raises(TypeError, match="must take exactly one argument, the message or a list of them"):
        inspect_handler(handler)


@pytest.mark.parametrize("handler", [None, 5, "module:function"])
def test_what_cannot_be_called_is_refused(handler: Any) -> None:
    with pytest.raises(TypeError, match="cannot be called: give a function that takes a message"):
        inspect_handler(handler)


def test_a_handler_is_named_by_where_it_is() -> None:
    assert inspect_handler(plain).name == f"{__name__}:plain"
    assert inspect_handler(AnObject().method).name.endswith(":AnObject.method")
    assert "partial" in inspect_handler(functools.partial(two, "x")).name


def a_generator(message: ReceivedMessage) -> Any:
    yield message


async def an_async_generator(message: ReceivedMessage) -> Any:
    yield message


class AGenerator:
    def __call__(self, message: ReceivedMessage) -> Any:
        yield message


@pytest.mark.parametrize(
    "handler",
    [a_generator, an_async_generator, AGenerator(), functools.partial(a_generator)],
    ids=["generator", "async generator", "callable object", "partial"],
)
def test_a_generator_function_is_refused_because_nothing_of_it_would_run(handler: Any) -> None:
    with pytest.raises(TypeError, match="must not `yield`"):
        inspect_handler(handler)
