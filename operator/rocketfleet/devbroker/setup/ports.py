"""Which ports a fleet listens on.

A broker that is told to listen on port p takes three: p, p - 2 (the `fast` port, for clients that do not want to queue
behind pulls) and p + 1 (replication). The proxy takes two: p for gRPC and p + 1 for remoting. A port is settled by
binding it, which is the only honest question; all of a fleet's ports are settled before its first process starts.

Free ports are looked for below the range from which the kernel hands out ports to outgoing connections: a port that is
free now, but in that range, may be somebody's local port by the time a JVM has started.
"""

import random
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence

from rocketfleet.devbroker.errors import PortError

LOWEST, HIGHEST = 15000, 32000
SPACING = 10
"""From one broker to the next, when the first one's port was given."""


def claims(process: str, port: int) -> tuple[int, ...]:
    """Every port that a process takes when it is told to use this one."""
    if process.startswith("broker-"):
        return (port - 2, port, port + 1)
    if process == "proxy":
        return (port, port + 1)
    return (port,)


def is_free(port: int) -> bool:
    """Whether nobody listens there, on loopback or on all addresses; old connections that linger do not count."""
    for address in ("127.0.0.1", ""):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                probe.listen(1)
            except OSError:
                return False
    return True


def choose_ports(
    processes: Sequence[str],
    *,
    given: Mapping[str, int],
    earlier: Mapping[str, int],
    free: Callable[[int], bool] = is_free,
    shuffle: Callable[[list[int]], None] = random.shuffle,
) -> dict[str, int]:
    """A port for each process: the given one, which must be free; else the one it had before, if it is free; else any.

    The answer's claims never overlap.
    """
    taken: set[int] = set()
    ports: dict[str, int] = {}

    def settle(process: str, port: int) -> bool:
        wanted = claims(process, port)
        if taken.intersection(wanted) or not all(0 < number < 65536 and free(number) for number in wanted):
            return False
        taken.update(wanted)
        ports[process] = port
        return True

    for process in processes:
        if process in given and not settle(process, given[process]):
            raise PortError(_taken(process, given[process], taken, free))
    for process in processes:
        if process in earlier and process not in ports:
            settle(process, earlier[process])
    candidates = _candidates(shuffle)
    for process in processes:
        while process not in ports:
            try:
                settle(process, next(candidates))
            except StopIteration:
                raise PortError(f"No free ports for {process} between {LOWEST} and {HIGHEST}.") from None
    return {process: ports[process] for process in processes}


def _candidates(shuffle: Callable[[list[int]], None]) -> Iterator[int]:
    order = list(range(LOWEST + 2, HIGHEST, SPACING // 2))
    shuffle(order)
    return iter(order)


def _taken(process: str, port: int, ours: set[int], free: Callable[[int], bool]) -> str:
    wanted = claims(process, port)
    if not all(0 < number < 65536 for number in wanted):
        return f"{process} cannot listen on port {port}: it needs {_listed(wanted)}."
    busy = [number for number in wanted if number in ours or not free(number)]
    why = f" ({process} on {port} takes {_listed(wanted)})" if len(wanted) > 1 else f", which {process} should use"
    verb = "is" if len(busy) == 1 else "are"
    return f"Port {_listed(busy)} {verb} taken{why}: stop what listens there, or give another port."


def _listed(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last
