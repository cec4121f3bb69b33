"""A worker process from its first line to its exit code: the control port, the handler's import, the member, signals.

Handlers run in threads next to the event loop and share the interpreter lock with it. A thread that wants the lock asks
for it only after the switch interval, 5 ms unless told otherwise; so while handlers compute, every pull, lock renewal
and commit waits 5 ms at each step, and a thread that finishes a message waits as long to begin the next. A tenth of
that costs the handlers next to nothing.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.control import exit_codes, last_words
from rocketfleet.control.budget import Margin
from rocketfleet.control.endpoints import Endpoints
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.control.port import ControlPort
from rocketfleet.control.server import ControlThread
from rocketfleet.control.token import Token
from rocketfleet.worker import stop_signals
from rocketfleet.worker.forced_exit import force_exit_soon
from rocketfleet.worker.handler_loading import HandlerError
from rocketfleet.worker.member import MemberSpec, WorkerMember
from rocketfleet.worker.member_control import MemberControl
from rocketfleet.worker.processes.lifeline import Lifeline
from rocketfleet.worker.starting import DrainedExit, Starting

_log = logging.getLogger(__name__)
SWITCH_INTERVAL = 0.0005


@dataclass(frozen=True, slots=True)
class Launch:
    """What is known of a member before its handler is: `load` imports that, and may take minutes."""

    settings: ConsumerSettings
    client_id: str
    load: Callable[[], MemberSpec]
    startup_timeout: float = 300.0


def run(
    launch: Launch,
    port: ControlPort,
    token: Token,
    lifeline: Lifeline | None = None,
    words_file: Path | None = None,
) -> int:
    """Run one member until it has drained; returns the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    starting = Starting(launch.settings.group, launch.client_id, launch.startup_timeout)
    endpoints = Endpoints(starting, token)
    control = ControlThread(endpoints.answer)
    chosen = port.announce(*port.open(control.start))
    parting, before = _Parting(DrainedExit(words_file)), _lasting()
    try:
        with stop_signals.ended_by_signals(parting.exit):
            if lifeline is not None:
                # Not by a signal: it may be the second one, and nobody has asked for a hurry.
                limit = 2 * Margin.ANSWER.after(launch.settings.drain_timeout) + Margin.EXIT.seconds
                lifeline.hold(min(limit, Margin.WITHOUT_LIMIT.seconds), stop=parting.stop)
                lifeline.report_port(chosen)
            spec = launch.load()
            if starting.end():
                # Until asyncio has taken the signals over, one of them still ends a process that holds nothing.
                return asyncio.run(_run(spec, endpoints, control, parting, words_file))
            _log.info("drained before the group was joined")
            last_words.leave(words_file, DrainOutcome(confirmed=True, offsets={}))
            control.close(Margin.ANSWER.seconds)
            force_exit_soon(exit_codes.DRAINED)
            return exit_codes.DRAINED
    except BaseException as error:
        control.close(0.0)
        if not _lasting() <= before:
            force_exit_soon(exit_codes.SETTINGS if isinstance(error, HandlerError) else exit_codes.FAILED)
        raise


class _Parting:
    """How a worker whose parent is gone is stopped: on the spot while it imports, by a drain later."""

    def __init__(self, exit_drained: DrainedExit) -> None:
        self.exit = exit_drained
        self.drain: Callable[[], object] | None = None

    def stop(self) -> None:
        if self.drain is None:
            self.exit()
        else:
            self.drain()


async def _run(
    spec: MemberSpec, endpoints: Endpoints, control: ControlThread, parting: _Parting, words_file: Path | None
) -> int:
    loop = asyncio.get_running_loop()
    member = WorkerMember(spec)
    parting.drain = lambda: loop.call_soon_threadsafe(member.stop)
    for number in stop_signals.SIGNALS:
        loop.add_signal_handler(number, member.signalled)
    stop_signals.taken_by_loop()
    living = loop.create_task(member.run(), name="member")
    await asyncio.sleep(0)  # it is alive before anybody can ask
    endpoints.control = MemberControl(member, loop)
    words = DrainOutcome(confirmed=False)
    try:
        outcome = await living
        code, words = outcome.code, outcome.last_words
    except Exception:
        _log.exception("the worker failed; this is a bug in it")
        code = exit_codes.FAILED
    last_words.leave(words_file, words)
    # In a thread: the outcome that callers wait for is handed to them by this loop.
    await asyncio.to_thread(control.close, Margin.ANSWER.seconds)
    for number in stop_signals.SIGNALS:
        loop.remove_signal_handler(number)
    stop_signals.ignore()
    force_exit_soon(code)
    return code


def _lasting() -> set[threading.Thread]:
    """The threads without whose end the process does not end."""
    return {thread for thread in threading.enumerate() if not thread.daemon}
