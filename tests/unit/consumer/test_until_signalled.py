"""A consumer as a program: signals stop it, once with patience and then without."""

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rocketfleet.consumer.until_signalled import SIGNALS, until_signalled


class Running:
    """Stands for a consumer: it is closed when it was asked to stop so many times."""

    def __init__(self, stops: int = 1) -> None:
        self.asked = 0
        self._stops = stops
        self._closed = asyncio.Event()
        self.events: list[str] = []

    async def start(self) -> None:
        self.events.append("started")

    async def stop(self) -> str:
        self.asked += 1
        if self.asked >= self._stops and not self._closed.is_set():
            self.events.append("stopped")
            self._closed.set()
        await self._closed.wait()
        return "where it stood"

    async def closed(self) -> None:
        await self._closed.wait()


class Signalled(Running):
    """It is told by signals as soon as somebody waits for its end."""

    def __init__(self, *numbers: signal.Signals, stops: int = 1) -> None:
        super().__init__(stops)
        self._numbers = numbers

    async def closed(self) -> None:
        for number in self._numbers:
            signal.raise_signal(number)
            await asyncio.sleep(0.01)
        await super().closed()


def run(it: Running) -> str:
    return until_signalled(it.start, it.stop, it.closed)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_it(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    it = Signalled(number)
    assert run(it) == "where it stood"
    assert it.events == ["started", "stopped"]
    assert signal.getsignal(number) is before


def test_a_second_signal_asks_again() -> None:
    it = Signalled(signal.SIGINT, signal.SIGTERM, stops=2)
    assert run(it) == "where it stood"
    assert it.asked == 3, "once for each signal, and once for the result"


def test_it_ends_when_somebody_else_stops_it() -> None:
    class Impatient(Running):
        async def start(self) -> None:
            await super().start()
            await self.stop()

    it = Impatient()
    assert run(it) == "where it stood"


def test_a_signal_during_the_start_counts() -> None:
    class Slow(Running):
        async def start(self) -> None:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0.01)
            await super().start()

    it = Slow()
    assert run(it) == "where it stood"


def test_what_start_raises_comes_out() -> None:
    class Refused(Running):
        async def start(self) -> None:
            raise ValueError("no such topic")

    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(ValueError, match="no such topic"):
        run(Refused())
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_elsewhere_it_says_what_to_do_instead() -> None:
    with ThreadPoolExecutor(1) as other, pytest.raises(RuntimeError, match=r"main thread.*`async with`"):
        other.submit(run, Running()).result()
    assert threading.current_thread() is threading.main_thread()


async def test_in_an_event_loop_it_says_what_to_do_instead() -> None:
    with pytest.raises(RuntimeError, match=r"event loop.*`async with`"):
        run(Running())
