"""Bringing one process up, and knowing that it is.

"Up" is what a client can rely on: the process lives, it has said so in its output, and what it offers can be reached (a
name server answers; a broker is registered there under its name and address). A process that dies on the way is
reported with its last words.

A broker registers once as it starts, and then only 10 s later again. The first try is lost, without a word, when the
broker's connection to the name server is not up yet, which happens on a busy machine. A broker that says it is up and
is not registered is therefore nudged: writing its `brokerPermission` anew makes it register at once.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from rocketfleet.base.processes import Identity, spawn
from rocketfleet.devbroker.errors import ProbeError, StartError
from rocketfleet.devbroker.lastwords import last_words
from rocketfleet.devbroker.probe import Probe
from rocketfleet.devbroker.setup.config import LOOPBACK, NAME_SERVER, PROXY, Layout, broker_name_of, is_slave
from rocketfleet.devbroker.setup.plan import ProcessPlan
from rocketfleet.wire.bodies import MASTER_ID
from rocketfleet.wire.codes import RequestCode

_POLL_SECONDS = 0.05
_NUDGE_SECONDS = 0.5
_FOREIGN_VARIABLES = ("NAMESRV_ADDR", "ROCKETMQ_HOME", "RMQ_PROXY_HOME", "CLASSPATH")
"""A RocketMQ installed elsewhere on this machine must not leak in: some of these win over our flags."""


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _FOREIGN_VARIABLES}


def launch(plan: ProcessPlan, layout: Layout, note: Callable[[Identity], None]) -> Identity:
    """Start a process; it is not up yet."""
    home = layout.home(plan.name)
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    for left_over in (home / "tmp").iterdir():  # native libraries of a JVM that was killed
        if left_over.is_file():
            left_over.unlink()
    return spawn(plan.argv, output=layout.output(plan.name), directory=home, environment=clean_environment(), note=note)


@dataclass(frozen=True)
class Readiness:
    """Asks whether processes are up."""

    layout: Layout
    ports: Mapping[str, int]
    probe: Probe
    broker_permission: str = "6"
    controller: bool = False
    """Whether a controller decides which replica of a broker is its master."""

    def is_up(self, plan: ProcessPlan) -> bool:
        if plan.ready_words not in self.output_of(plan.name):
            return False
        if plan.name == PROXY:
            return True
        try:
            brokers = self.probe.registered_brokers(f"{LOOPBACK}:{self.ports[NAME_SERVER]}")
        except ProbeError:
            return False
        if plan.name == NAME_SERVER:
            return True
        addresses, own = brokers.get(broker_name_of(plan.name), {}), f"{LOOPBACK}:{self.ports[plan.name]}"
        if self.controller:
            return MASTER_ID in addresses and own in addresses.values()
        return addresses.get(1 if is_slave(plan.name) else MASTER_ID) == own

    def output_of(self, process: str) -> str:
        try:
            return self.layout.output(process).read_text("utf-8", errors="replace")
        except OSError:
            return ""

    def wait(
        self,
        started: Iterable[tuple[ProcessPlan, Identity]],
        timeout: float,
        progress: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Return when all are up; raise a StartError when one dies or the time is out."""
        began = nudged = clock()
        waiting = list(started)
        while waiting:
            for plan, identity in waiting:
                # Ask for life before readiness: one that died after it was up must not count.
                if not identity.alive:
                    raise StartError(self._obituary(plan.name))
            waiting = [(plan, identity) for plan, identity in waiting if not self.is_up(plan)]
            if not waiting:
                return
            seconds = clock() - began
            names = ", ".join(plan.name for plan, _ in waiting)
            if seconds > timeout:
                raise StartError(
                    f"Not ready after {timeout:g} s: {names}. See {self.layout.output(waiting[0][0].name)}."
                )
            if clock() - nudged > _NUDGE_SECONDS:
                for plan, _ in waiting:
                    self._nudge(plan)
                nudged = clock()
            progress(f"starting {names}: {seconds:.0f} s")
            sleep(_POLL_SECONDS)

    def _nudge(self, plan: ProcessPlan) -> None:
        # A replica that has no role yet must not register: it would do so under an id that is not its own.
        if self.controller or plan.name in (NAME_SERVER, PROXY) or plan.ready_words not in self.output_of(plan.name):
            return
        with suppress(ProbeError):
            body = f"brokerPermission={self.broker_permission}\n".encode()
            self.probe.call(f"{LOOPBACK}:{self.ports[plan.name]}", RequestCode.UPDATE_BROKER_CONFIG, body=body)

    def _obituary(self, process: str) -> str:
        logs = sorted((self.layout.home(process) / "logs" / "rocketmqlogs").glob("*.log"))
        said = last_words(self.output_of(process), (log.read_text("utf-8", errors="replace") for log in logs))
        words = f" Its last words: {' / '.join(said)}." if said else " It said nothing."
        return f"{process} died while it was starting.{words} Its output is in {self.layout.output(process)}."
