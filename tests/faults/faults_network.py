"""Faults of the network between one member and one broker, with all its replicas.

A cut drops packets without a word, as a firewall or a dead switch does; or it resets connections and refuses new ones.
"""

from abc import abstractmethod

from tests.faults.fault import Fault
from tests.faults.network import MemberNamespace

from rocketfleet.devbroker.setup.config import broker_name_of
from rocketfleet.testing.history import EventKind, FaultName


class _OfLink(Fault):
    """A fault of the way from a member to a broker."""

    name = FaultName.CUT

    @property
    def member(self) -> str:
        return self.timed.target.partition("/")[0]

    @property
    def broker(self) -> str:
        return self.timed.target.partition("/")[2]

    @property
    def targets(self) -> tuple[str, ...]:
        return self.scene.members.running[self.member].client_ids

    @property
    def namespace(self) -> MemberNamespace:
        assert self.scene.networks is not None, "members have networks of their own if there are such faults"
        return self.scene.networks.of(self.member)

    @property
    def ports(self) -> list[int]:
        """What the broker's replicas listen on for clients."""
        ports = self.scene.fleet.known().ports
        return [
            n for process, port in ports.items() if broker_name_of(process) == self.broker for n in (port, port - 2)
        ]

    @property
    def rule(self) -> str:
        return f"fault_{id(self)}"

    def _note(self, kind: EventKind, details: dict[str, object]) -> None:
        super()._note(kind, {"broker": self.broker, "how": self.timed.kind.value, **self.timed.details, **details})

    @abstractmethod
    def cut(self) -> None:
        """Add the rule."""

    async def apply(self) -> None:
        self.note_fault()
        self.cut()

    async def heal(self) -> None:
        self.namespace.undo(self.rule)
        self.note_healed()


class CutOff(_OfLink):
    def cut(self) -> None:
        if self.timed.details.get("resets"):
            self.namespace.drop(self.rule, self.ports, sent="reject with tcp reset", received="reject with tcp reset")
        else:
            self.namespace.drop(self.rule, self.ports, sent="drop", received="drop")


class CutToBroker(_OfLink):
    def cut(self) -> None:
        self.namespace.drop(self.rule, self.ports, sent="drop")


class CutFromBroker(_OfLink):
    def cut(self) -> None:
        self.namespace.drop(self.rule, self.ports, received="drop")


class Lossy(_OfLink):
    name = FaultName.LOSSY

    def cut(self) -> None:
        action = f"numgen random mod 100 < {self.timed.details['percent']} drop"
        self.namespace.drop(self.rule, self.ports, sent=action, received=action)


class Throttled(_OfLink):
    """All that the member sends and receives, whatever the broker."""

    name = FaultName.SLOWED

    @property
    def broker(self) -> str:
        return "*"

    def cut(self) -> None:
        self.namespace.throttle(self.timed.details["kilobits"])

    async def heal(self) -> None:
        self.namespace.unthrottle()
        self.note_healed()
