"""Calls to the control ports of workers, wherever they run: what do you hold, share out anew, drain.

Each call is one connection, bounded in time and in the size of its answer. Whatever goes wrong is a CallFailed with a
sentence; whether that matters is for the caller to decide.
"""

import json
import logging
import time
from collections.abc import Callable

from rocketfleet.control.http_call import CallFailed, Credential, call
from rocketfleet.control.messages import Assignment, ControlMessageError, DrainOutcome, DrainReport
from rocketfleet.control.proof import Proof

_log = logging.getLogger(__name__)
_FORBIDDEN = 403
_UNAUTHORIZED = 401  # what a worker answers that knows no proofs; one that does, and is not convinced, answers 403
POD_ANSWER_SECONDS = 2.0
POD_REBALANCE_SECONDS = 20.0


class WorkerCalls:
    """The three calls, to anybody's `host:port`.

    A pod may have been given an image with a worker that is older than proofs (control/proof.py), which wants the token
    itself. Whoever answers at a pod's former address could claim the same; so the token is only sent for images of
    which no worker has taken a proof yet. Which image a pod runs is what its node says, not what the answer says.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._skewed: set[str] = set()  # pods whose clocks differ from ours
        self._proving: set[str] = set()  # images whose workers have taken a proof
        self._older: set[str] = set()  # and those that have not

    async def assignment(self, address: str, token: Credential, limit: float = POD_ANSWER_SECONDS) -> Assignment:
        answer = await self._ask(address, "GET", "/assignment", token, limit)
        try:
            return Assignment.from_json(answer)
        except ControlMessageError as error:
            raise CallFailed(f"/assignment of {address} is not what a worker answers: {error}") from error

    async def rebalance(self, address: str, token: Credential, limit: float = POD_REBALANCE_SECONDS) -> None:
        """Have it do a round now."""
        await self._ask(address, "POST", "/rebalance", token, limit)

    async def drain(self, address: str, token: Credential, limit: float) -> DrainOutcome:
        """Drain it; returns when it has, with the offsets it reached."""
        answer = await self._ask(address, "POST", "/drain", token, limit)
        try:
            return DrainReport.from_json(answer).outcome
        except ControlMessageError as error:
            raise CallFailed(f"/drain of {address} is not what a worker answers: {error}") from error

    async def ready(self, address: str, limit: float = POD_ANSWER_SECONDS) -> bool:
        """Whether it says that it is ready. One that does not answer is not."""
        try:
            return (await call(address, "GET", "/readyz", None, limit)).status == 200
        except CallFailed:
            return False

    async def _ask(self, address: str, method: str, path: str, token: Credential, limit: float) -> object:
        now = self._wall()
        response = await call(address, method, path, token, limit, now=now)
        if isinstance(token, Proof):
            if response.status == _FORBIDDEN:
                there = token.time_told(response.body, method, path, now)
                if there is not None:
                    self._note_skewed(address, token.pod, there - now)
                    response = await call(address, method, path, token, limit, now=there)
            if response.status == _UNAUTHORIZED and token.image is not None and token.image not in self._proving:
                self._note_older(address, token.image)
                response = await call(address, method, path, token.token, limit)
            elif response.status == 200 and token.image is not None:
                self._proving.add(token.image)
        if response.status != 200:
            words = response.body.decode("utf-8", "replace").strip()[:500]
            raise CallFailed(f"{path} of {address} answered {response.status}: {words}")
        try:
            answer = json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise CallFailed(f"{path} of {address} did not answer JSON") from error
        if not isinstance(answer, dict):
            raise CallFailed(f"{path} of {address} did not answer a JSON object")
        return answer

    def _note_skewed(self, address: str, pod: str, seconds: float) -> None:
        if pod not in self._skewed:
            self._skewed.add(pod)
            ahead = "ahead of" if seconds > 0 else "behind"
            _log.warning(
                "the clock of the pod at %s is %.0f s %s this operator's: correct the one that is wrong",
                address,
                abs(seconds),
                ahead,
            )

    def _note_older(self, address: str, image: str) -> None:
        if image not in self._older:
            self._older.add(image)
            _log.warning(
                "the worker at %s knows no proofs, so it is sent the control token itself: its image is older than "
                "this operator and should be updated (%s)",
                address,
                image,
            )
