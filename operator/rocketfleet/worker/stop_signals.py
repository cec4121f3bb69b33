"""SIGTERM and SIGINT in a worker that holds nothing yet: they end it on the spot, wherever it is.

A signal comes once, and the first process of a container is not even ended by one that nobody handles: a worker that
missed it would join the group, and be killed with messages in its hands. So the signals are taken as soon as the
command is known, and until the member's event loop has them.

The handler's import may be deep in foreign code. Python runs its handlers between two steps of its own, which a library
in C may not take for minutes; so a thread listens too, to the socket that Python writes to from the signal itself. That
also hears of signals for which the import has installed a handler of its own.

A process that is forked (multiprocessing does it) has the handlers too, and *shares* the socket: a signal for the child
would end or drain the parent. So children get rid of both.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rocketfleet.control.exit_codes import DRAINED

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_Handler = Callable[[int, Any], Any]
_ours: set[Any] = set()  # handlers that are not for children


@contextmanager
def taken_early() -> Iterator[None]:
    """From the beginning: nothing is held, and no file is known to leave words in."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _take(lambda number, frame: os._exit(DRAINED))
    try:
        yield
    finally:
        _give_back(before)


@contextmanager
def ended_by_signals(leave: Callable[[], None]) -> Iterator[None]:
    """Meanwhile a signal leads to `leave`, which ends the process. For the main thread; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _take(lambda number, frame: leave())
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)

    def listen() -> None:
        while number := heard.recv(1):
            if number[0] in SIGNALS:
                leave()

    listening = threading.Thread(target=listen, name="signals", daemon=True)
    listening.start()
    try:
        yield
    finally:
        _give_back(before)
        signal.set_wakeup_fd(-1)
        told.shutdown(socket.SHUT_RDWR)  # a forked child may have it open, too
        told.close()
        listening.join()
        heard.close()


def taken_by_loop() -> None:
    """An event loop has the signals now."""
    _ours.update(signal.getsignal(number) for number in SIGNALS)


def ignore() -> None:
    """The process is about to end, and how has been said: another signal must not change its exit code."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _take(handler: _Handler) -> dict[signal.Signals, Any]:
    _ours.add(handler)
    return {number: signal.signal(number, handler) for number in SIGNALS}


def _give_back(before: dict[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        if signal.getsignal(number) in _ours:
            signal.signal(number, handler)


def _forked() -> None:
    if not _ours:
        return
    signal.set_wakeup_fd(-1)
    for number, usual in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) in _ours:
            signal.signal(number, usual)


os.register_at_fork(after_in_child=_forked)
