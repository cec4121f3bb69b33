"""Networks of the harness's own: each member in a namespace, where its way to a broker can be cut, lossy or slow.

The harness itself moves into a new namespace first, which has a loopback interface and nothing else: brokers, traffic
and observer are in there, nothing of it reaches any other network, and when the last process is gone the kernel removes
it with all interfaces and rules. A member's namespace is held by a process that sleeps, and is joined to the harness's
by a pair of interfaces.

Brokers listen on 127.0.0.1 and tell that address to everybody. A member connects to it as well: in its namespace such
packets are readdressed to the harness's end of the pair, and arriving there to 127.0.0.1 again. Ports stay the same, so
a rule about a broker is a rule about its ports.

                member's namespace                          harness's namespace
    worker → 127.0.0.1:port ─ dnat ─ eth0 ═══════ m<n> ─ dnat → 127.0.0.1:port  broker
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.faults.members import die_with_parent

_CLONE_NEWNET: Final = 0x40000000
_PROGRAMS: Final = ("ip", "nft", "tc", "nsenter")
_libc = ctypes.CDLL(None, use_errno=True)


class NetworkError(Exception):
    """A namespace, an interface or a rule could not be made."""


def why_not() -> str | None:
    """Why this machine can make no namespaces; None if it can."""
    if os.geteuid() != 0:
        return "they need root, for network namespaces"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    return f"{', '.join(missing)} not found" if missing else None


def enter_own_namespace() -> str | None:
    """Move this process, and what it starts from now on, into a new namespace; or say why not.

    To be called before there are threads: they would stay where they are.
    """
    reason = why_not()
    if reason is None and _libc.unshare(_CLONE_NEWNET) != 0:
        reason = f"a network namespace could not be made: {os.strerror(ctypes.get_errno())}"
    if reason is None:
        try:
            _run("ip", "link", "set", "lo", "up")
            _nft(_HARNESS_RULES)
        except NetworkError as error:
            reason = str(error)
    return reason


_HARNESS_RULES: Final = """
table ip rocketfleet_faults {
    chain arriving { type nat hook prerouting priority dstnat; iifname "m*" ip protocol tcp dnat to 127.0.0.1; }
}
"""

# In the namespace of a member. What goes to a server is all that leaves; its own control port stays inside.
_MEMBER_RULES: Final = """
table ip rocketfleet_faults {{
    chain leaving {{
        type nat hook output priority -100;
        ip daddr 127.0.0.1 tcp dport {{ {ports} }} dnat to {gateway};
    }}
    chain left {{ type nat hook postrouting priority srcnat; oifname "eth0" snat to {address}; }}
}}
"""


@dataclass
class MemberNamespace:
    """One member's network."""

    name: str
    number: int
    ports: Collection[int]  # of all servers
    holder: "subprocess.Popen[bytes] | None" = None
    file: int = -1

    @property
    def gateway(self) -> str:
        return f"10.77.{self.number}.1"

    @property
    def address(self) -> str:
        return f"10.77.{self.number}.2"

    def make(self) -> None:
        outside = f"m{self.number}"

        def unshare() -> None:
            die_with_parent()
            _libc.unshare(_CLONE_NEWNET)

        self.holder = subprocess.Popen(
            ["sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=unshare,  # noqa: PLW1509 - it makes system calls only
        )
        self.file = os.open(f"/proc/{self.holder.pid}/ns/net", os.O_RDONLY)
        _run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        _run("ip", "address", "add", f"{self.gateway}/30", "dev", outside)
        _run("ip", "link", "set", outside, "up")
        Path(f"/proc/sys/net/ipv4/conf/{outside}/route_localnet").write_text("1")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "address", "add", f"{self.address}/30", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet")
        self.nft(
            _MEMBER_RULES.format(
                ports=", ".join(map(str, sorted(self.ports))), gateway=self.gateway, address=self.address
            )
        )

    def run(self, *command: str, text: str | None = None) -> None:
        """Run a program in the namespace."""
        assert self.holder is not None
        _run("nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *command, text=text)

    def nft(self, rules: str) -> None:
        self.run("nft", "-f", "-", text=rules)

    def enter(self) -> None:
        """To be called in a child that is about to become the member."""
        _libc.setns(self.file, _CLONE_NEWNET)

    def drop(self, rule: str, ports: Collection[int], *, sent: str = "", received: str = "") -> None:
        """Add a rule by name: what is done with packets sent to these ports, and with those received from them."""
        listed = ", ".join(map(str, sorted(ports)))
        chains = [
            f"chain {hook} {{ type filter hook {hook} priority 0; tcp {field} {{ {listed} }} {action}; }}"
            for hook, field, action in (("output", "dport", sent), ("input", "sport", received))
            if action
        ]
        self.nft(f"table ip {rule} {{ {'; '.join(chains)}; }}\n")

    def undo(self, rule: str) -> None:
        """Take a rule away."""
        self.nft(f"delete table ip {rule}\n")

    def throttle(self, kilobits: int) -> None:
        """Let both ways carry so much per second."""
        limit = ("root", "tbf", "rate", f"{kilobits}kbit", "burst", "8kb", "latency", "800ms")
        self.run("tc", "qdisc", "add", "dev", "eth0", *limit)
        _run("tc", "qdisc", "add", "dev", f"m{self.number}", *limit)

    def unthrottle(self) -> None:
        self.run("tc", "qdisc", "del", "dev", "eth0", "root")
        _run("tc", "qdisc", "del", "dev", f"m{self.number}", "root")

    def close(self) -> None:
        """End the holder. Namespace, interfaces and rules go with the last process in it."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
        if self.holder is not None:
            self.holder.kill()
            self.holder.wait()
            self.holder = None


@dataclass
class MemberNetworks:
    """The namespaces of all members of a run."""

    server_ports: Collection[int]
    _by_name: dict[str, MemberNamespace] = field(default_factory=dict)

    def of(self, name: str) -> MemberNamespace:
        """A member's, made when it is first asked for."""
        if name not in self._by_name:
            found = self._by_name[name] = MemberNamespace(name, len(self._by_name) + 1, self.server_ports)
            found.make()
        return self._by_name[name]

    def preparation(self, name: str) -> Callable[[], None]:
        return self.of(name).enter

    def close(self) -> None:
        for one in self._by_name.values():
            one.close()
        self._by_name.clear()


def _nft(rules: str) -> None:
    _run("nft", "-f", "-", text=rules)


def _run(*command: str, text: str | None = None) -> None:
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)
    if ended.returncode != 0:
        raise NetworkError(f"{' '.join(command)} failed: {(ended.stderr or ended.stdout).strip()}")
