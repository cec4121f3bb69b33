"""Whatever a handler returns or raises ends in a verdict on each of its messages, and the queue goes on.

Handlers that behave in every way that comes to mind run in the real pools, for both kinds of consumption, as functions
and as coroutine functions, with single messages and with batches. Afterwards every message is either handled or was
retried, and nothing is in memory any more.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.clock import Clock
from tests.support.waiting import until
from tests.unit.consumer.messages import several
from tests.unit.consumer.model_broker import queue

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.concurrent import ConcurrentConsumption, ConcurrentTimings
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.orderly import OrderlyConsumption, OrderlyTimings
from rocketfleet.consumer.delivery.process_queue import ProcessQueue
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK, SUCCESS, SUSPEND, Retry
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.message import ReceivedMessage

# -- what handlers do -------------------------------------------------------------------------------------------------


class OfNoClass:
    @property
    def __class__(self) -> type:
        raise RuntimeError("of no class")

    @__class__.setter
    def __class__(self, _kind: type) -> None: ...


class Incomparable:
    __hash__ = None  # type: ignore[assignment]  # that is what it is about

    def __eq__(self, _other: object) -> bool:
        raise RuntimeError("not to be compared")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")

    def __len__(self) -> int:
        raise RuntimeError("of no length")


class EqualToAll:
    __hash__ = object.__hash__

    def __eq__(self, _other: object) -> bool:
        return True


class OddList(list[object]):
    def __iter__(self) -> Any:
        raise SystemExit(4)


class OddRetry(Retry):
    @property
    def level(self) -> Any:
        raise KeyboardInterrupt


class OddName(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]  # that is what it is about
        raise RuntimeError("nameless")


class Nameless(metaclass=OddName): ...


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise SystemExit(5)

    __repr__ = __str__


async def _never() -> None: ...


def _tampered(**fields: Any) -> Retry:
    retry = Retry()
    for name, value in fields.items():
        object.__setattr__(retry, name, value)
    return retry


def _cancels_itself() -> None:
    with suppress(RuntimeError):  # in a thread there is no task
        task = asyncio.current_task()
        assert task is not None
        task.cancel()


BEHAVIOURS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "success": lambda: SUCCESS,
    "true": lambda: True,
    "commit": lambda: COMMIT,
    "retry": lambda: RETRY,
    "false": lambda: False,
    "suspend": lambda: SUSPEND,
    "rollback": lambda: ROLLBACK,
    "level": lambda: Retry(3),
    "a moment": lambda: Retry(seconds=0),
    "a timedelta": lambda: Retry(seconds=timedelta(seconds=1)),  # type: ignore[arg-type]
    "not a number": lambda: Retry(seconds=float("nan")),
    "a huge level": lambda: Retry(1 << 70),
    "tampered seconds": lambda: _tampered(seconds=timedelta(seconds=1)),
    "tampered nan": lambda: _tampered(seconds=float("nan")),
    "tampered level": lambda: _tampered(level="three"),
    "an odd retry": lambda: object.__new__(OddRetry),
    "no class": OfNoClass,
    "incomparable": Incomparable,
    "equal to all": EqualToAll,
    "nameless": Nameless,
    "a coroutine": _never,
    "a generator": lambda: (number for number in range(3)),
    "an empty list": list,
    "an odd list": lambda: OddList([SUCCESS]),
    "a list of oddities": lambda: [OfNoClass(), Incomparable(), Nameless()],
    "a list of one": lambda: [SUCCESS],
    "an exception, returned": lambda: ValueError("returned"),
    "a class": lambda: ValueError,
    "cancels itself": _cancels_itself,
}
RAISED: dict[str, Callable[[], BaseException]] = {
    "value error": lambda: ValueError("no"),
    "exit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "generator exit": GeneratorExit,
    "stop": StopIteration,
    "async stop": StopAsyncIteration,
    "cancelled": asyncio.CancelledError,
    "timeout": TimeoutError,
    "recursion": RecursionError,
    "memory": MemoryError,
    "not to be shown": UnspeakableError,
    "group": lambda: BaseExceptionGroup("both", [SystemExit(1), ValueError("no")]),
}


def _raising(make: Callable[[], BaseException]) -> Callable[[], Any]:
    def behave() -> Any:
        raise make()

    return behave


KNOWN = {**BEHAVIOURS, **{f"raises {name}": _raising(make) for name, make in RAISED.items()}}
SOMETIMES_GOOD = {"nothing", "success", "true", "commit", "a list of one", "cancels itself"}
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from([SUCCESS, RETRY]),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)
behaviours = st.sampled_from(sorted(KNOWN)).map(KNOWN.__getitem__) | values.map(lambda value: lambda: value)


# -- the scene --------------------------------------------------------------------------------------------------------


class Scene:
    """One lane of a service; the handler misbehaves as told on the first try of each message."""

    def __init__(self, mode: ConsumeMode, *, is_async: bool, batch: bool, auto_commit: bool = True) -> None:
        self.behave: list[Callable[[], Any]] = []
        self.tries: Counter[int] = Counter()
        self.sent_back: list[int] = []
        self.done: set[int] = set()
        self._writing = threading.Lock()

        def one(message: ReceivedMessage) -> Any:
            return self.handle([message])

        def several_at_once(messages: list[ReceivedMessage]) -> Any:
            return self.handle(messages)

        async def one_async(message: ReceivedMessage) -> Any:
            await asyncio.sleep(0)
            answer = self.handle([message])
            await asyncio.sleep(0)
            return answer

        async def several_async(messages: list[ReceivedMessage]) -> Any:
            await asyncio.sleep(0)
            answer = self.handle(messages)
            await asyncio.sleep(0)
            return answer

        handlers: dict[tuple[bool, bool], Callable[[Any], Any]] = {
            (False, False): one,
            (False, True): several_at_once,
            (True, False): one_async,
            (True, True): several_async,
        }
        self.tally = ConsumerCounters()
        make = (
            partial(OrderlyConsumption, timings=OrderlyTimings(tick=0.002))
            if mode is ConsumeMode.ORDERLY
            else partial(ConcurrentConsumption, timings=ConcurrentTimings(tick=0.002))
        )
        self.service: OrderlyConsumption | ConcurrentConsumption = make(
            ConsumerSettings(
                "g",
                (Subscription("t"),),
                consume_mode=mode,
                consume_thread_min=1,
                consume_thread_max=2,
                suspend_current_queue_time=0.01,
                consume_message_batch_max_size=3 if batch else 1,
                auto_commit=auto_commit,
            ),
            inspect_handler(handlers[is_async, batch]),
            self.send_back,
            clock=Clock(),
            tally=self.tally,
        )

    async def send_back(self, message: ReceivedMessage, _level: int) -> None:
        self.sent_back.append(message.queue_offset)

    def handle(self, messages: list[ReceivedMessage]) -> Any:
        with self._writing:
            first = [m for m in messages if not self.tries[m.queue_offset]]
            self.tries.update([m.queue_offset for m in messages])
        if first and first[0].queue_offset < len(self.behave):
            return self.behave[first[0].queue_offset]()
        with self._writing:
            self.done |= {m.queue_offset for m in messages}
        return COMMIT

    async def goes_through(self, behave: list[Callable[[], Any]]) -> None:
        self.behave = behave
        count = len(behave) + 3
        lane = Lane(queue(), ProcessQueue(0))
        self.service.open(lane)
        lane.window.put(several(0, count), count)
        self.service.offer(lane)
        await until(lambda: lane.window.committable == count and lane.window.idle, "every message has its verdict")
        assert (lane.window.count, lane.window.size, lane.window.uncommitted) == (0, 0, (0, 0))
        assert set(self.tries) == set(range(count))
        # And it still works, in every respect.
        after = Lane(queue(1), ProcessQueue(100))
        self.service.open(after)
        after.window.put(several(100, 5), 105)
        self.service.offer(after)
        await until(lambda: after.window.committable == 105 and after.window.idle, "another queue is served too")


async def _go_through(mode: ConsumeMode, behave: list[Callable[[], Any]], **kind: bool) -> Scene:
    scene = Scene(mode, **kind)
    try:
        await scene.goes_through(behave)
    finally:
        await scene.service.close()
    return scene


modes = pytest.mark.parametrize("mode", list(ConsumeMode), ids=lambda mode: mode.name.lower())
pools = pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])
sizes = pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
quiet = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@quiet
@modes
@pools
@sizes
@pytest.mark.parametrize("name", sorted(KNOWN))
async def test_each_kind_of_behaviour_ends_in_a_verdict(
    mode: ConsumeMode, is_async: bool, batch: bool, name: str
) -> None:
    scene = await _go_through(mode, [KNOWN[name]], is_async=is_async, batch=batch)
    if name not in SOMETIMES_GOOD:
        if mode is ConsumeMode.ORDERLY:
            assert scene.tries[0] == 2, "it came again"
        else:
            assert scene.sent_back[:1] == [0], "it was sent back"
            assert scene.tries[0] == 1


@quiet
@pools
@pytest.mark.parametrize("name", sorted(KNOWN))
async def test_also_where_the_handler_commits(is_async: bool, name: str) -> None:
    scene = await _go_through(
        ConsumeMode.ORDERLY, [lambda: SUCCESS, KNOWN[name]], is_async=is_async, batch=False, auto_commit=False
    )
    assert scene.tries[0] == (2 if name == "rollback" else 1)
    if name not in SOMETIMES_GOOD:
        assert scene.tries[1] == 2, "it came again"


@quiet
@modes
@pools
@sizes
def test_any_row_of_behaviours_ends_in_verdicts(mode: ConsumeMode, is_async: bool, batch: bool) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(behaviours, min_size=1, max_size=6))
    @example([KNOWN["cancels itself"], KNOWN["raises exit"], KNOWN["an odd list"]])
    def check(behave: list[Callable[[], Any]]) -> None:
        asyncio.run(_go_through(mode, behave, is_async=is_async, batch=batch))

    check()
