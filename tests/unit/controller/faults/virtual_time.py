"""An event loop whose time passes only when nobody has anything to do: an hour of waiting takes no time at all.

Whatever the operator waits with (`asyncio.sleep`, `asyncio.timeout`, a work queue's next moment) asks the loop for the
time and for its next timer, so nothing has to be patched. Nothing here has a socket: a loop that has no timer and
nothing to do would wait for ever, and that is an error of the test.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Lets time pass where another would wait."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nobody has anything to do, nor ever will: the test waits for ever")
        self.passed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own, which begins at `begins`."""

    def __init__(self, begins: float) -> None:
        self._flow = _Selector()
        self._begins = begins
        super().__init__(self._flow)
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._begins + self._flow.passed


def run(begins: float, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(begins)) as runner:
        return runner.run(main())
