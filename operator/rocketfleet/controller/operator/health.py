"""Is the operator of any use? /healthz, /readyz and /metrics, answered by a thread of their own.

/healthz is for whoever would restart us, so it fails only where that helps: the event loop is stuck, or keys are due
and no worker gets to them. It has to answer when the loop does not, hence the thread. An API server or a broker that
does not answer is no reason to be restarted. /readyz says that we know the cluster's state; a standby is as ready as
the one that leads.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from rocketfleet.base.counting import counted
from rocketfleet.control.http import HttpRequest, Response, text_response
from rocketfleet.control.server import ControlThread

BEAT = 0.5  # seconds between two notes of the event loop
LOOP_STUCK_SECONDS = 15.0
WAITED_TOO_LONG = 60.0


@dataclass(frozen=True, slots=True)
class OperatorVitals:
    """What the event loop notes of itself. `since_pass`: since a pass over a group ended, or could have begun."""

    due: int = 0
    oldest_waits: float = 0.0
    since_pass: float = 0.0
    synced: bool = False
    watches: bool = False
    leads: bool = False
    stopping: bool = False


def problems(vitals: OperatorVitals, since_beat: float) -> list[str]:
    """Why the process should be restarted, a sentence each; empty if it is well."""
    found = []
    if since_beat > LOOP_STUCK_SECONDS:
        found.append(f"the event loop has not run for {since_beat:.1f} s (limit {LOOP_STUCK_SECONDS:g} s)")
    # Many that wait while passes end is a lot of work, which a restart would only make more.
    if min(vitals.oldest_waits, vitals.since_pass) > WAITED_TOO_LONG and not vitals.stopping:
        found.append(
            f"reconciling makes no progress: {counted(vitals.due, 'group is', 'groups are')} due, the first of them "
            f"for {vitals.oldest_waits:.0f} s, and no pass has ended for {vitals.since_pass:.0f} s"
        )
    return found


def not_ready(vitals: OperatorVitals) -> str | None:
    """Why nobody should rely on us yet."""
    if vitals.stopping:
        return "stopping"
    if not vitals.synced:
        return "the cluster's state has not been read yet"
    if not vitals.watches:
        return "the cluster is not being watched: the log says why"
    return None


class Health:
    """The endpoints. `beat` belongs on the event loop; the server's thread reads only what it left."""

    def __init__(self, metrics: Callable[[], bytes], metrics_type: str) -> None:
        self._metrics = metrics
        self._metrics_type = metrics_type
        self._last_beat = time.monotonic()
        self.vitals = OperatorVitals()
        self._thread = ControlThread(self.answer)

    def beat(self, vitals: OperatorVitals) -> None:
        """Note how things are, and that the loop runs."""
        self.vitals = vitals
        self._last_beat = time.monotonic()

    def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen. Raises OSError if the address cannot be had."""
        return self._thread.start(host, port)

    def close(self) -> None:
        self._thread.close(0.5)

    async def answer(self, request: HttpRequest) -> Response:
        if request.method not in ("GET", "HEAD"):
            return text_response(405, "only GET")
        if request.path == "/metrics":
            return Response(200, self._metrics(), self._metrics_type)
        vitals = self.vitals
        if request.path == "/healthz":
            found = problems(vitals, time.monotonic() - self._last_beat)
            return text_response(503, "\n".join(found)) if found else text_response(200, "ok")
        if request.path == "/readyz":
            why = not_ready(vitals)
            return text_response(503, why) if why else text_response(200, "leads" if vitals.leads else "stands by")
        return text_response(404, "there are /healthz, /readyz and /metrics")
