"""The process's maker of unique message ids.

Two ids differ by their counter if they are of one process, and by address, process id and a random number if they are
not. There must be one maker a process, or two counters would run side by side. A forked child gets a maker of its
own: it inherits its parent's counter and random number, and the process id alone (always 1 in a container) is no safe
difference.
"""

import os
import secrets
import socket
import threading
from ipaddress import ip_address

from rocketfleet.client.transport.address import parse
from rocketfleet.wire.message import UniqueIds

_lock = threading.Lock()
_maker: UniqueIds | None = None


def process_ids(name_server: str) -> UniqueIds:
    """The maker; the first caller's name server decides which of the host's addresses the ids carry."""
    global _maker  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _maker is None:
            _maker = UniqueIds(own_address(name_server), os.getpid(), secrets.randbits(32))
        return _maker


def own_address(name_server: str) -> bytes:
    """The address from which this host reaches the name server, packed. Only looked up: no packet is sent."""
    try:
        target = parse(name_server)
        # A host name would have to be resolved, which can block; the number after it is what keeps ids apart.
        version = ip_address(target.host).version
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM) as look:
            look.connect((target.host, target.port))
            return ip_address(look.getsockname()[0].partition("%")[0]).packed
    except (OSError, ValueError):
        return bytes([127, 0, 0, 1])


def _after_fork() -> None:
    global _maker, _lock  # noqa: PLW0603 - the parent's lock may be held by a thread that does not exist here
    _maker = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
