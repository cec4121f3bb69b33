"""A fleet: the name server, brokers and proxy of one directory, as a whole and one by one.

This is the Python API under `rocketfleet broker`, and what tests and demonstrations use to start, pause, kill and
restart. Each method reads the directory's state anew, so a fleet started by one process can be driven by another;
changes take turns by a file lock in the directory.
"""

import datetime
import errno
import fcntl
import os
import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocketfleet.base.processes import Identity, end_all, kill_all
from rocketfleet.devbroker import state
from rocketfleet.devbroker.distribution.jars import classpath_of, provide_jars
from rocketfleet.devbroker.distribution.java import find_java
from rocketfleet.devbroker.errors import DevBrokerError, StartError
from rocketfleet.devbroker.lastwords import last_words
from rocketfleet.devbroker.launch import Readiness, clean_environment, launch
from rocketfleet.devbroker.mqadmin import has_failed, mqadmin_argv
from rocketfleet.devbroker.probe import Probe
from rocketfleet.devbroker.reporting import Reporter, Silent
from rocketfleet.devbroker.setup import certificates
from rocketfleet.devbroker.setup.config import LOOPBACK, NAME_SERVER, FleetSpec, Layout, broker_name_of
from rocketfleet.devbroker.setup.credentials import load_admin, provide_admin
from rocketfleet.devbroker.setup.plan import FleetPlan, PlanInputs, plan_fleet
from rocketfleet.devbroker.setup.ports import choose_ports
from rocketfleet.devbroker.state import FleetState
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.bodies import MASTER_ID

START_SECONDS = 180.0
GRACE_SECONDS = 30.0
_PORT_TRIES = 3


class Fleet:
    """The RocketMQ of one directory."""

    def __init__(self, directory: Path | str, reporter: Reporter | None = None) -> None:
        self.layout = Layout(Path(directory).absolute())
        self._reporter = reporter or Silent()

    # What is there

    @property
    def directory(self) -> Path:
        return self.layout.directory

    def state(self) -> FleetState | None:
        """What the directory remembers; None if nothing was ever started there."""
        return state.load(self.layout.state)

    def known(self) -> FleetState:
        """The state of a fleet that must have been started."""
        found = self.state()
        if found is None:
            raise DevBrokerError(f"No RocketMQ was started in {self.directory}: `rocketfleet broker start` does.")
        return found

    @property
    def running(self) -> bool:
        """Whether the fleet was started wholly and every process of it lives."""
        found = self.state()
        return found is not None and found.ready and set(found.living) == set(found.spec.processes)

    @property
    def name_server(self) -> str:
        return f"{LOOPBACK}:{self.known().ports[NAME_SERVER]}"

    @property
    def broker_address(self) -> str:
        """The first master's."""
        return self.address_of(self.master_of(self._first_broker()))

    def address_of(self, process: str) -> str:
        """Where a process listens, whatever its role is now."""
        return f"{LOOPBACK}:{self.known().ports[process]}"

    @property
    def masters(self) -> dict[str, str]:
        """Broker name → the address of its master."""
        return {name: self.address_of(self.master_of(name)) for name in self.known().spec.broker_names}

    def master_of(self, name: str) -> str:
        """The process that is the master of a broker. With a controller that changes: the name server is asked."""
        found = self.known()
        if name not in found.spec.broker_names:
            raise DevBrokerError(f"This fleet has no {name}; it has {', '.join(found.spec.broker_names)}.")
        if not found.spec.controller:
            return name
        address = self.probe().registered_brokers(self.name_server).get(name, {}).get(MASTER_ID)
        for process in found.spec.broker_processes:
            if broker_name_of(process) == name and address == f"{LOOPBACK}:{found.ports[process]}":
                return process
        raise DevBrokerError(f"{name} has no master now.")

    @property
    def classpath(self) -> str:
        return classpath_of(Path(self.known().jars))

    @property
    def admin_user(self) -> Credentials | None:
        """The administrator's credentials, if the fleet has ACLs."""
        return load_admin(self.layout.credentials) if self.known().spec.acl else None

    def probe(self) -> Probe:
        """Something that can ask this fleet's servers."""
        spec = self.known().spec
        return Probe(self.admin_user, self.ssl_context() if spec.tls else None)

    def ssl_context(self) -> ssl.SSLContext:
        """A client's: trusts the fleet's CA only, shows the fleet's client certificate."""
        tls = self.layout.tls
        context = ssl.create_default_context(cafile=tls / certificates.CA)
        context.load_cert_chain(tls / certificates.CLIENT, tls / certificates.CLIENT_KEY)
        return context

    # The whole fleet

    def start(self, spec: FleetSpec, *, repository: str | None = None, timeout: float = START_SECONDS) -> bool:
        """Start everything and wait until it is up. False if it was up already (as it is, whatever the spec says)."""
        with self._turn(), _disk_errors(self.directory):
            earlier = self.state()
            if earlier is not None and self.running:
                return False
            if earlier is not None and earlier.living:
                self._reporter.say(f"ending what is left of an earlier start: {', '.join(earlier.living)}")
                self._end(earlier, GRACE_SECONDS)
            java = find_java()
            jars = provide_jars(repository, self._reporter)
            if spec.acl:
                provide_admin(self.layout.credentials)
            if spec.needs_certificates:
                certificates.provide_certificates(self.layout.tls, datetime.datetime.now(datetime.UTC))
            remembered = earlier.ports if earlier is not None else {}
            for left in reversed(range(_PORT_TRIES)):
                ports = choose_ports(spec.listeners, given=spec.given_ports, earlier=remembered)
                for name, port in ports.items():
                    if name not in spec.given_ports and remembered.get(name, port) != port:
                        self._reporter.say(
                            f"{name} listens on port {port} now: {remembered[name]}, as before, is taken"
                        )
                found = FleetState(spec, ports, java, str(jars))
                try:
                    self._start(found, timeout)
                except StartError as problem:
                    # Another program took a port between our look and the JVM's bind.
                    if "Address already in use" not in str(problem) or spec.given_ports or not left:
                        raise
                    remembered = {}  # and look for others
                else:
                    return True
            raise AssertionError("unreachable")

    def stop(self, *, delete_data: bool = False, grace: float = GRACE_SECONDS) -> list[str]:
        """End every process of this directory; returns their names.

        A broker takes about 12 s to end in good order. With delete_data, nothing is left of the directory's
        content, and so there is no such wait.
        """
        if not self.layout.lock.exists():
            return []  # not a fleet's directory: whatever is in it is not ours
        with self._turn():
            found = self.state()
            ended: list[str] = []
            if found is not None:
                ended = list(found.living)
                self._end(found, 0.0 if delete_data else grace)
            if delete_data:
                self._delete()
        return ended

    def mend(self, timeout: float = START_SECONDS) -> None:
        """Bring back whatever is paused, dead or lost sight of by the name server."""
        with self._turn():
            found = self.known()
            plan = self._plan(found)
            for wave in found.spec.waves:
                dead = [name for name in wave if not self._continues(found, name)]
                for name in dead:
                    self._launch(plan, found, name)
                self._wait(plan, found, dead, timeout)
            self._wait(plan, found, found.spec.processes, timeout)

    # One process

    def identity_of(self, process: str) -> Identity:
        found = self.known()
        if process not in found.spec.processes:
            raise DevBrokerError(f"This fleet has no {process}; it has {', '.join(found.spec.processes)}.")
        if process not in found.processes:
            raise DevBrokerError(f"{process} is not running.")
        return found.processes[process]

    def kill(self, process: str | None = None) -> None:
        """End a process as a crash would (SIGKILL)."""
        kill_all([self.identity_of(process or self._first_broker())])

    def pause(self, process: str | None = None) -> None:
        """Freeze a process: its sockets stay open, nothing answers."""
        self._signal(process or self._first_broker(), signal.SIGSTOP)

    def resume(self, process: str | None = None) -> None:
        self._signal(process or self._first_broker(), signal.SIGCONT)

    def end(self, process: str | None = None, grace: float = GRACE_SECONDS) -> None:
        """End a process in good order (SIGTERM)."""
        end_all([self.identity_of(process or self._first_broker())], grace)

    def restart(self, process: str | None = None, timeout: float = START_SECONDS, grace: float = GRACE_SECONDS) -> None:
        """End a process in good order, if it lives, start it again and wait until it is up."""
        process = process or self._first_broker()
        with self._turn():
            found = self.known()
            if process in found.processes:
                end_all([found.processes[process]], grace)
            plan = self._plan(found)
            self._launch(plan, found, process)
            self._wait(plan, found, [process], timeout)

    # mqadmin

    def admin_command(self, arguments: Sequence[str]) -> list[str]:
        """The command line that runs mqadmin on this fleet."""
        found = self.known()
        (self.layout.home("mqadmin") / "tmp").mkdir(parents=True, exist_ok=True)
        return mqadmin_argv(
            found.spec,
            self.layout,
            arguments,
            java=found.java,
            classpath=self.classpath,
            name_server=self.name_server,
        )

    def admin(self, *arguments: str, timeout: float = 60.0) -> str:
        """Run mqadmin and return what it printed; raise if it failed, which its exit code does not tell."""
        try:
            answer = subprocess.run(
                self.admin_command(arguments),
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                env=clean_environment(),
            )
        except subprocess.TimeoutExpired:
            raise DevBrokerError(f"mqadmin {' '.join(arguments[:1])} did not end within {timeout:g} s.") from None
        if answer.returncode != 0 or has_failed(answer.stdout + answer.stderr):
            said = " / ".join(last_words(answer.stdout + "\n" + answer.stderr)) or f"exit code {answer.returncode}"
            raise DevBrokerError(f"mqadmin {' '.join(arguments[:1])} failed: {said}")
        return answer.stdout

    # Inside

    def _first_broker(self) -> str:
        return self.known().spec.broker_names[0]

    @staticmethod
    def _continues(found: FleetState, name: str) -> bool:
        """Whether a process lives; if it is paused, it goes on."""
        identity = found.processes.get(name)
        return identity is not None and identity.send(signal.SIGCONT)

    def _signal(self, process: str, number: signal.Signals) -> None:
        if not self.identity_of(process).send(number):
            raise DevBrokerError(f"{process} is not running.")

    def _plan(self, found: FleetState) -> FleetPlan:
        admin = load_admin(self.layout.credentials) if found.spec.acl else None
        around = PlanInputs(self.layout, found.ports, found.java, classpath_of(Path(found.jars)), admin)
        return plan_fleet(found.spec, around)

    def _start(self, found: FleetState, timeout: float) -> None:
        state.save(self.layout.state, found)
        plan = self._plan(found)
        for path, content in plan.files.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            state.write_private(path, content)
        try:
            for wave in found.spec.waves:
                for name in wave:
                    self._launch(plan, found, name)
                self._wait(plan, found, wave, timeout)
        except BaseException:
            self._end(found, 0.0)  # nobody can have stored anything in it yet
            raise
        found.ready = True
        state.save(self.layout.state, found)

    def _launch(self, plan: FleetPlan, found: FleetState, name: str) -> None:
        def note(identity: Identity) -> None:
            found.processes[name] = identity
            state.save(self.layout.state, found)

        launch(plan.processes[name], self.layout, note)

    def _wait(self, plan: FleetPlan, found: FleetState, names: Sequence[str], timeout: float) -> None:
        permission = dict(found.spec.properties).get("brokerPermission", "6")
        readiness = Readiness(self.layout, found.ports, self.probe(), permission, found.spec.controller)
        started = [(plan.processes[name], found.processes[name]) for name in names]
        readiness.wait(started, timeout, self._reporter.progress)

    def _end(self, found: FleetState, grace: float) -> None:
        """All at once but the name server: it stays so that every broker can sign off, and then has nothing to save."""
        others = {name: identity for name, identity in found.processes.items() if name != NAME_SERVER}
        stubborn = end_all(others.values(), grace, lambda left: self._reporter.progress(_stopping(others, left)))
        for name, identity in others.items():
            if identity in stubborn and grace > 0:
                self._reporter.say(f"{name} did not end within {grace:g} s and was killed")
        kill_all(found.processes.values())
        found.processes.clear()
        found.ready = False
        state.save(self.layout.state, found)

    def _delete(self) -> None:
        layout = self.layout
        for directory in (layout.data, layout.directory / "home", layout.configuration, layout.tls):
            shutil.rmtree(directory, ignore_errors=True)
        for file in (layout.credentials, layout.state, layout.lock):
            file.unlink(missing_ok=True)
        try:
            layout.directory.rmdir()
        except OSError as problem:
            if problem.errno not in (errno.ENOTEMPTY, errno.EBUSY, errno.ENOENT):
                raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One command at a time in a directory."""
        while True:
            self.directory.mkdir(parents=True, exist_ok=True)
            if not self.layout.lock.exists() and any(self.directory.iterdir()):
                raise DevBrokerError(
                    f"{self.directory} holds other things, and no RocketMQ was ever started there: "
                    "give it a directory of its own."
                )
            with self.layout.lock.open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._reporter.say(f"another command is at work in {self.directory}; waiting for it")
                    fcntl.flock(file, fcntl.LOCK_EX)
                try:
                    current = self.layout.lock.stat().st_ino
                except FileNotFoundError:
                    continue  # the other command has deleted the directory
                if os.fstat(file.fileno()).st_ino == current:
                    yield
                    return


def _stopping(processes: Mapping[str, Identity], left: Sequence[Identity]) -> str:
    return f"stopping {', '.join(name for name, identity in processes.items() if identity in left)}"


@contextmanager
def _disk_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DevBrokerError(f"The disk is full: cannot write to {directory}.") from None
        if problem.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise DevBrokerError(f"Cannot write to {problem.filename or directory}: {problem.strerror}.") from None
        raise
