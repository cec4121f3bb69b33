"""A worker process from its first line to its exit code: the member, its control port, signals.

Handlers run in threads next to the event loop and share the interpreter lock with it. A thread that wants the lock asks
for it only after the switch interval, 5 ms unless told otherwise; so while handlers compute, every pull, lock renewal
and commit waits 5 ms at each step, and a thread that finishes a message waits as long to begin the next. A tenth of
that costs the handlers next to nothing.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from rocketfleet.worker import exit_codes, last_words
from rocketfleet.worker.control_server import ControlThread
from rocketfleet.worker.endpoints import Endpoints
from rocketfleet.worker.lifeline import Lifeline
from rocketfleet.worker.member import Member, MemberSpec
from rocketfleet.worker.member_control import MemberControl
from rocketfleet.worker.port import ControlPort
from rocketfleet.worker.token import Token

_log = logging.getLogger(__name__)
SWITCH_INTERVAL = 0.0005
ANSWER_GRACE = 5.0  # for callers that wait for the drain's outcome
EXIT_GRACE = 10.0  # for exit hooks and whatever threads the handler left


def run(
    spec: MemberSpec,
    port: ControlPort,
    token: Token,
    lifeline: Lifeline | None = None,
    words_file: Path | None = None,
) -> int:
    """Run one member until it has drained; returns the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    return asyncio.run(_run(spec, port, token, lifeline, words_file))


async def _run(
    spec: MemberSpec, port: ControlPort, token: Token, lifeline: Lifeline | None, words_file: Path | None
) -> int:
    loop = asyncio.get_running_loop()
    member = Member(spec)
    control = ControlThread(Endpoints(MemberControl(member, loop), token).answer)
    living = loop.create_task(member.run(), name="member")
    await asyncio.sleep(0)  # it is alive before anybody can ask
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, member.stop_or_hurry)
    try:
        chosen = port.announce(*port.open(control.start))
    except BaseException:
        living.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await living
        raise
    if lifeline is not None:
        lifeline.hold(2 * (spec.settings.drain_timeout + ANSWER_GRACE) + EXIT_GRACE)
        lifeline.report_port(chosen)
    words = last_words.LastWords(confirmed=False)
    try:
        outcome = await living
        code = outcome.code
        offsets = {queue: end.offset for queue, end in outcome.final.items()}
        words = last_words.LastWords(code == exit_codes.DRAINED, offsets)
    except Exception:
        _log.exception("the worker failed; this is a bug in it")
        code = exit_codes.FAILED
    last_words.leave(words_file, words)
    # In a thread: the outcome that callers wait for is handed to them by this loop.
    await asyncio.to_thread(control.close, ANSWER_GRACE)
    _leave_in_any_case(code)
    return code


def _leave_in_any_case(code: int) -> None:
    """A thread of the handler's must not keep a drained process alive; exit hooks get their time, and no more."""

    def leave() -> None:
        _log.error("the process did not end %g s after its drain: ending it", EXIT_GRACE)
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(EXIT_GRACE, leave)
    timer.daemon = True
    timer.start()
