"""Several worker processes under one: because an interpreter uses one core, and a pod may have more.

Each child is a full member of the group, with a client id and a control port of its own. The parent starts them, starts
again what ends by itself, passes signals on, and answers for all of them on its own control port. It does not load the
handler, and nothing in it blocks, so its control port runs on its one event loop.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocketfleet.control import exit_codes, last_words
from rocketfleet.control.budget import Margin
from rocketfleet.control.endpoints import Endpoints, Unavailable
from rocketfleet.control.http_call import CallFailed
from rocketfleet.control.messages import Assignment, DrainOutcome, DrainReport
from rocketfleet.control.port import ControlPort
from rocketfleet.control.server import ControlServer
from rocketfleet.control.token import Token
from rocketfleet.worker.processes.child import CHILD_ANSWER_SECONDS, Child
from rocketfleet.worker.processes.merging import Part, merged_assignment, merged_drain

_log = logging.getLogger(__name__)
CHILDREN_REBALANCE_SECONDS = 20.0
_NOTICE_SECONDS = 0.3  # from a child's last breath to the parent's knowing of it


class Parent:
    """A Control over children."""

    def __init__(
        self,
        count: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        drain_timeout: float,
        words_file: Path | None = None,
    ) -> None:
        self._children = [Child(number) for number in range(count)]
        self._command = command
        self._environment = environment
        self._words_file = words_file
        self._drain_limit = Margin.CONTROL_CALL.after(drain_timeout)
        self._stopping = asyncio.Event()
        self._signals = 0
        self._drained: asyncio.Task[DrainReport] | None = None
        self._codes: list[int] = []

    # -- life ---------------------------------------------------------------------------------------------------------

    async def run(self, port: ControlPort, token: Token) -> int:
        """Run until all children have drained; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        control = ControlServer(Endpoints(self, token).answer)
        try:
            address = await control.start(port.bind, port.port)
        except OSError as error:
            raise port.refused(error) from error
        port.announce(*address)
        killing = loop.create_task(self._kill_in_the_end())
        try:
            await asyncio.gather(*(self._keep(child) for child in self._children))
            if self._drained is not None:
                await asyncio.wait({self._drained})
        finally:
            killing.cancel()
            last_words.leave(self._words_file, self._words())
            await control.close(Margin.ANSWER.seconds)
        return exit_codes.combined(self._codes)

    def _words(self) -> DrainOutcome:
        """Where the queues stood is known if we were called; told by a signal, the children report only their codes."""
        code = exit_codes.combined(self._codes)
        confirmed = exit_codes.is_confirmed(code) and len(self._codes) == len(self._children)
        cut_short = self._codes.count(exit_codes.CUT_SHORT)
        if self._drained is not None and self._drained.done() and not self._drained.cancelled():
            with contextlib.suppress(Exception):  # a drain that failed has told its caller
                said = self._drained.result().outcome
                unfinished = max(said.unfinished, cut_short)
                return DrainOutcome(said.confirmed and confirmed, said.offsets, unfinished=unfinished)
        return DrainOutcome(confirmed, unfinished=cut_short)

    async def _keep(self, child: Child) -> None:
        """Keep one child running until told to stop."""
        while not self._stopping.is_set():
            code = await child.live(self._command, self._environment)
            if self._stopping.is_set():
                # Ended by the bare signal, it was not even listening for it yet, and so no member.
                self._codes.append(exit_codes.DRAINED if code == -signal.SIGTERM else code)
                return
            if code == exit_codes.SETTINGS:
                _log.error(
                    "process %d says that its settings are wrong; the others have the same: stopping", child.number
                )
                self._codes.append(code)
                self._stop()
                return
            pause = child.restarts.ended(child.lived)
            _log.error("process %d ended by itself (%s); next start in %.1f s", child.number, _reason(code), pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    def _signalled(self) -> None:
        """The first is each child's first too, however its drain has begun; only our second hurries any of them."""
        self._signals += 1
        if self._signals <= 2:
            _log.info("asked to stop by a %ssignal: passing it on", "" if self._signals == 1 else "second ")
        self._stop(self._signals)

    def _stop(self, times: int = 1) -> None:
        self._stopping.set()
        for child in self._children:
            child.tell_to_stop(times)

    async def _kill_in_the_end(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(self._drain_limit)  # which may be for ever
        for child in self._children:
            if child.is_running:
                _log.critical("process %d has not ended after %g s: killing it", child.number, self._drain_limit)
                child.kill()

    # -- what may be asked --------------------------------------------------------------------------------------------

    async def health(self) -> list[str]:
        return await self._sentences("/healthz", lenient=True)

    async def readiness(self) -> list[str]:
        if self._stopping.is_set():
            return ["the worker is draining"]
        return await self._sentences("/readyz", lenient=False)

    async def _sentences(self, path: str, *, lenient: bool) -> list[str]:
        """What the children complain of. `lenient`: one that is about to start is no reason to restart the others."""

        async def one(child: Child) -> str | None:
            try:
                response = await child.ask("GET", path)
            except CallFailed as error:
                if not lenient:
                    return str(error)
                await asyncio.sleep(_NOTICE_SECONDS)
                if not child.can_be_asked:
                    return child.trouble
                try:
                    response = await child.ask("GET", path)
                except CallFailed as again:
                    return str(again)
            return None if response.status == 200 else response.body.decode("utf-8", "replace").strip()

        answers = await asyncio.gather(*(one(child) for child in self._children))
        return [f"process {i}: {line}" for i, answer in enumerate(answers) if answer for line in answer.splitlines()]

    async def metrics(self) -> tuple[str, bytes]:
        from rocketfleet.worker import metrics
        from rocketfleet.worker.processes import merged_metrics

        texts: dict[int, str] = {}

        async def one(child: Child) -> None:
            with contextlib.suppress(CallFailed):
                response = await child.ask("GET", "/metrics")
                if response.status == 200:
                    texts[child.number] = response.body.decode()

        await asyncio.gather(*(one(child) for child in self._children))
        restarts = {child.number: child.restarts.total for child in self._children}
        return metrics.CONTENT_TYPE, merged_metrics.merge(texts, restarts)

    async def assignment(self) -> Assignment:
        return merged_assignment(await self._assignments("GET", "/assignment", CHILD_ANSWER_SECONDS))

    async def rebalance(self) -> Assignment:
        if self._stopping.is_set():
            raise Unavailable("there is nothing to rebalance: the worker is draining", status=409)
        parts = await self._assignments("POST", "/rebalance", CHILDREN_REBALANCE_SECONDS)
        if not any(part.answer for part in parts):
            raise Unavailable("; ".join(f"process {part.process}: {part.error}" for part in parts))
        return merged_assignment(parts)

    async def drain(self) -> DrainReport:
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_task(self._drain())
        return await asyncio.shield(self._drained)

    async def _drain(self) -> DrainReport:
        self._stopping.set()
        return merged_drain(await asyncio.gather(*(self._drain_one(child) for child in self._children)))

    async def _drain_one(self, child: Child) -> Part[DrainReport]:
        part = await child.part("POST", "/drain", DrainReport.from_json, self._drain_limit)
        if part.answer is None:
            child.tell_to_stop()  # it may be starting, and has to end all the same
        return part

    async def _assignments(self, method: str, path: str, limit: float) -> list[Part[Assignment]]:
        calls = (child.part(method, path, Assignment.from_json, limit) for child in self._children)
        return list(await asyncio.gather(*calls))


def _reason(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
