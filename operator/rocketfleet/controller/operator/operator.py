"""The operator: watches, a work queue, one reconciler while it leads, and an orderly end.

Everything runs on one event loop, health apart. A standby does all that the leader does but act: it watches, so that
its view is warm when it takes over. A *term* is the time between winning the Lease and losing it; each has a
reconciler of its own, because what the last one remembered may have been changed by whoever led in between. A term
begins with a full read of the cluster and ends with the cancellation of everything that is under way.

The end in good order: begin nothing new, let passes under way finish, give the Lease back, stop watching.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import kopf
from kubernetes.aio import config as kube_config
from kubernetes.aio.client import ApiClient, Configuration

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.names import KIND
from rocketfleet.client.variables import POD_NAME_VARIABLE
from rocketfleet.control.port import shown
from rocketfleet.controller.kube.api import KubeApi, KubeError
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.kube.pace import BURST, QPS, CallRate
from rocketfleet.controller.kube.view import KubeView
from rocketfleet.controller.operator import health as healths
from rocketfleet.controller.operator.group_pass import GroupPass
from rocketfleet.controller.operator.handlers import Wakers, make_registry, make_settings
from rocketfleet.controller.operator.health import Health, OperatorVitals
from rocketfleet.controller.operator.leader import Leadership, LeaseTimes
from rocketfleet.controller.operator.lease import KubeLease
from rocketfleet.controller.operator.metrics import CONTENT_TYPE, Metrics
from rocketfleet.controller.operator.rivals import Rivals
from rocketfleet.controller.operator.term import LagOptions, Term
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.reconciling.work_queue import WorkQueue
from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.controller.rocketmq.allowed_hosts import allowed_hosts

_log = logging.getLogger(__name__)
STOP_GRACE = 10.0  # seconds that passes under way get at the end
WATCH_STOP = 5.0
SWEEP = 3600.0  # seconds after which the view reads its lists, whatever the watch says
LISTS_SETTLE_SECONDS = 1.0  # that a burst of listed objects gets before the lists are read
TRY_AGAIN = 2.0


class OperatorError(Exception):
    """It cannot run; the message says why."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator is told when it is started."""

    defaults: Defaults
    namespaces: tuple[str, ...] = ()  # none: all
    workers: int = 8
    lease_namespace: str = "default"
    lease_name: str = "rocketfleet"
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    operator_class: str = ""  # of the groups that are looked after; none: those without one
    bind: str = "127.0.0.1"
    port: int = 0
    lag: LagOptions = field(default_factory=LagOptions)
    api_qps: float = QPS
    api_burst: int = BURST
    allowed_name_servers: tuple[str, ...] = ()  # none: all but what is never allowed (allowed_hosts.py)
    identity: str = field(default_factory=lambda: new_identity(os.environ.get(POD_NAME_VARIABLE)))

    @property
    def release(self) -> str:
        """All operators of which one leads."""
        return f"{self.lease_namespace}/{self.lease_name}"


def new_identity(name: str | None) -> str:
    """A name that no other process has, not even the same pod's next container."""
    return f"{name or socket.gethostname()}_{secrets.token_hex(4)}"


async def load_configuration() -> Configuration:
    """The cluster that KUBECONFIG names; in a pod, its own."""
    configuration = Configuration()
    try:
        if "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ:
            kube_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call] # the package has no annotations
        else:
            # The default location is read when the package is imported, so the variable is asked here.
            file = os.environ.get("KUBECONFIG") or None
            await kube_config.load_kube_config(config_file=file, client_configuration=configuration)  # type: ignore[no-untyped-call] # as above
    except (kube_config.ConfigException, OSError) as error:
        raise OperatorError(f"no cluster is configured: {error}. Set KUBECONFIG, or run in a pod") from error
    configuration.retries = None  # who calls decides what is tried again
    return configuration


def api_server_of(configuration: Configuration) -> list[str]:
    """The hosts at which the API server is known to us."""
    return [urlsplit(configuration.host).hostname or "", os.environ.get("KUBERNETES_SERVICE_HOST", "")]


class Operator:
    """All parts together. `make_term` makes the reconciler of a term, given the backend, how to wake a group,
    and the metrics that are told what it completes.
    """

    def __init__(
        self,
        options: Options,
        configuration: Configuration,
        make_term: Callable[[KubeBackend, Callable[[GroupKey], None], Metrics], Term],
    ) -> None:
        self._options = options
        self._configuration = configuration
        self._make_term = make_term
        self.metrics = Metrics()
        self._client = ApiClient(configuration)
        self._client.user_agent = "rocketfleet-operator"
        lease = KubeLease(KubeApi(self._client, None, self.metrics.called), options.lease_namespace, options.lease_name)
        self.leadership = Leadership(
            lease, options.identity, wall=time.time, changed=lambda _: self._turned.set(), times=options.lease_times
        )
        pace = CallRate(options.api_qps, options.api_burst)
        self._api = KubeApi(self._client, self.leadership, self.metrics.called, pace)
        self.view = KubeView(self._api, options.namespaces, options.operator_class)
        self._relisted = asyncio.Event()
        self.backend = KubeBackend(
            self._api,
            self.view,
            options.defaults,
            instance=options.identity,
            clock=time.monotonic,
            wall=time.time,
            hosts=allowed_hosts(options.allowed_name_servers, api_server_of(configuration)),
            told=self.metrics.told,
            lost=self._relisted.set,
        )
        rivals = Rivals(options.release, time.monotonic)
        self._pass = GroupPass(self.view, self.backend, self.leadership.may_act, time.time, rivals)
        self.queue: WorkQueue[GroupKey] = WorkQueue(
            self._pass, options.workers, observe=self._passed, foreseen=(BackendError,)
        )
        self._turned = asyncio.Event()
        self._stopping = False
        self._watches = False
        self._term: Term | None = None
        self.health = Health(self._rendered, CONTENT_TYPE)
        self._add_gauges()

    def _add_gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge("leader", "1 while this operator leads.", lambda: float(self.leadership.may_act()))
        gauge("groups", "ConsumerGroups that are known.", lambda: float(len(self.view.groups)))
        gauge("pods", "Their pods.", lambda: float(len(self.view.pods)))
        gauge("queue_due", "Groups that are due and wait for a worker.", lambda: float(self.health.vitals.due))
        gauge("queue_oldest_seconds", "How long the first of them has waited.", lambda: self.health.vitals.oldest_waits)
        gauge("reconciles_running", "Passes under way.", lambda: float(self.queue.busy))

    def _passed(self, key: GroupKey, seconds: float, well: bool) -> None:
        """Count a pass. One that was refused something by the API server has failed, though it ended in good order."""
        self.metrics.passed(seconds, well and self._pass.well(key))

    def _rendered(self) -> bytes:
        """What Prometheus sees: of the operator always, of the groups while it leads."""
        term = self._term
        return self.metrics.render() + (b"" if term is None else term.metrics())

    def _vitals(self) -> OperatorVitals:
        due, oldest = self.queue.waiting()
        return OperatorVitals(
            due=due,
            oldest_waits=oldest,
            since_pass=self.queue.since_pass(),
            synced=self.view.synced,
            watches=self._watches,
            leads=self.leadership.may_act(),
            stopping=self._stopping,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, or something ends that should not: then OperatorError says what."""
        host, port = self.health.start(self._options.bind, self._options.port)
        _log.info("health and metrics: http://%s", shown(host, port))
        tasks = [asyncio.create_task(coroutine, name=name) for name, coroutine in self._always(stop)]
        leading: asyncio.Task[None] | None = None
        try:
            first = asyncio.create_task(self._sync_until_done(), name="first sync")
            await asyncio.wait([first, *tasks], return_when=asyncio.FIRST_COMPLETED)
            if first.done() and not stop.is_set():
                first.result()
                tasks.append(asyncio.create_task(self._watch(stop), name="watches"))
                leading = asyncio.create_task(self.leadership.run(), name="leadership")
                tasks.append(leading)
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            first.cancel()
            ended = [task for task in tasks if task.done() and task.get_name() != "stop"]
            await self._stop(leading)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._close()
        for task in ended:
            error = None if task.cancelled() else task.exception()
            raise OperatorError(f"{task.get_name()} ended by itself: {error or 'no error was given'}") from error

    def _always(self, stop: asyncio.Event) -> list[tuple[str, Coroutine[Any, Any, Any]]]:
        return [
            ("stop", stop.wait()),
            ("heartbeat", self._beat()),
            ("work queue", self.queue.run()),
            ("terms", self._follow_leadership()),
            ("sweeps", self._sweep()),
        ]

    async def _beat(self) -> None:
        while True:
            self.health.beat(self._vitals())
            await asyncio.sleep(healths.BEAT)

    async def _sync_until_done(self) -> None:
        """The first read; it also finds out whether the resource is known to the cluster at all."""
        while True:
            try:
                await self.view.sync()
            except BackendError as error:
                advice = ""
                if isinstance(error, KubeError) and error.not_found:
                    advice = f" Is {KIND} installed? kubectl apply -f crds/"
                _log.warning("the cluster's state cannot be read yet: %s.%s", error, advice)
                await asyncio.sleep(TRY_AGAIN)
            else:
                return

    async def _watch(self, stop: asyncio.Event) -> None:
        """Watch, and begin anew if kopf gives up, as it does when the API refuses it for a minute.

        A kopf that does not know our settings would fail the same way each time: that ends the operator.
        """
        settings = make_settings()
        while True:
            try:
                await self._watch_once(stop, settings)
            except Exception as error:
                _log.warning("watching ended and begins anew in %g s: %s", TRY_AGAIN, repr(error))
            await asyncio.sleep(TRY_AGAIN)
            self._relisted.set()

    async def _watch_once(self, stop: asyncio.Event, settings: kopf.OperatorSettings) -> None:
        """kopf, until it ends or we are cancelled.

        Its tasks are run here, not by `kopf.operator`: that one cancels at its end whatever runs on the loop.
        """
        registry = make_registry(self.view, Wakers(self.queue.wake, self._relisted.set), self._configuration)
        # Left to itself kopf looks for the user's name, which a container's user may not have. Its own type for an
        # identity, which is text, is not public.
        identity: Any = self._options.identity
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=settings,
            standalone=True,
            identity=identity,
            clusterwide=not self._options.namespaces,
            namespaces=self._options.namespaces,
        )
        _take_signals(stop)  # kopf has taken them for itself
        self._watches = True
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        finally:
            self._watches = False
            for _ in range(2):  # the second time for whoever was busy with ending
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks, timeout=WATCH_STOP)

    async def _follow_leadership(self) -> None:
        while True:
            await self._turned.wait()
            self._turned.clear()
            if self.leadership.may_act() and self._term is None and not self._stopping:
                await self._begin_term()
            elif not self.leadership.may_act() and self._term is not None:
                await self._end_term(0.0)

    async def _begin_term(self) -> None:
        while self.leadership.may_act():
            try:
                await self.view.sync()  # all that the leader before us has written
            except BackendError as error:
                _log.warning("the cluster's state cannot be read: %s", error)
                await asyncio.sleep(TRY_AGAIN)
                continue
            self._term = self._make_term(self.backend, self.queue.wake, self.metrics)
            self._pass.begin_term(self._term)
            for key in self.view.keys():  # noqa: SIM118 - a method of the view, not of a dict
                self.queue.wake(key)
            self.queue.open()
            return

    async def _end_term(self, grace: float) -> None:
        term, self._term = self._term, None
        await self.queue.close(grace)
        self._pass.end_term()
        if term is not None:
            await term.close()

    async def _sweep(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP):
                    await self._relisted.wait()
            await asyncio.sleep(LISTS_SETTLE_SECONDS)
            lost_track = self._relisted.is_set()
            self._relisted.clear()
            try:
                for key in await self.view.sync(cached=not lost_track):
                    self.queue.wake(key)
            except BackendError as error:
                _log.warning("the lists could not be read again: %s", error)
                await asyncio.sleep(TRY_AGAIN)
                self._relisted.set()

    async def _stop(self, leading: asyncio.Task[None] | None) -> None:
        _log.info("stopping: passes under way get %g s", STOP_GRACE)
        self._stopping = True
        self.health.beat(self._vitals())
        await self._end_term(STOP_GRACE)
        if leading is not None:  # or it would take the Lease again
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
        await self.leadership.release()

    async def _close(self) -> None:
        self.backend.close()
        await self._api.close()
        self.health.close()


def _take_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread
            loop.add_signal_handler(number, stop.set)


async def run_operator(options: Options) -> None:
    """Run on the cluster that is configured, until a signal says stop."""

    def make_term(backend: KubeBackend, wake: Callable[[GroupKey], None], metrics: Metrics) -> Term:
        defaults = replace(options.defaults, operator=options.release)
        return Term(backend, wake, defaults, options.lag, metrics)

    stop = asyncio.Event()
    _take_signals(stop)
    await Operator(options, await load_configuration(), make_term).run(stop)
