"""The cache of jars: whole, checked, shared by every broker of this user.

The jars lie in one flat directory, `$ROCKETFLEET_CACHE/rocketmq-VERSION`, so that `directory/*` is the class path.
Hashing 106 MB at every start would cost a second, so a stamp file notes the size and modification time each jar had
when it was last hashed: a jar that still has them is taken as good, any other is hashed again and, if it is wrong,
fetched anew. Processes that want to fetch take turns by a file lock; one that finds everything stamped takes no lock
and writes nothing.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocketfleet.devbroker.distribution.download import fetch_all, repository_address
from rocketfleet.devbroker.distribution.lock import VERSION, Jar, locked_jars
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.reporting import Silent

if TYPE_CHECKING:
    from rocketfleet.devbroker.reporting import Reporter

CACHE_VARIABLE = "ROCKETFLEET_CACHE"
STAMP = "verified.json"

Stamp = dict[str, tuple[int, int, str]]
"""File name → size, modification time in nanoseconds, SHA-256, as of the last full check."""


def cache_directory() -> Path:
    """Where this user's jars (and other things worth keeping between runs) live."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given).absolute() if given else Path.home() / ".cache" / "rocketfleet"


def classpath_of(directory: Path) -> str:
    """The class path for a directory of jars."""
    return f"{directory}/*"


def provide_jars(
    repository: str | None = None,
    reporter: "Reporter | None" = None,
    *,
    cache: Path | None = None,
    jars: Iterable[Jar] | None = None,
    fetch: Callable[[Iterable[Jar], Path, str, "Reporter"], None] = fetch_all,
) -> Path:
    """Return the directory with all jars of RocketMQ, fetching what is missing or broken."""
    wanted = tuple(locked_jars() if jars is None else jars)
    reporter = reporter or Silent()
    directory = (cache or cache_directory()) / f"rocketmq-{VERSION}"
    if not unstamped(wanted, directory, _read_stamp(directory)):
        return directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _turn(directory.with_name(f"{directory.name}.lock"), reporter):
            stamp = _read_stamp(directory)
            broken = [jar for jar in unstamped(wanted, directory, stamp) if not _is_whole(jar, directory, stamp)]
            if broken:
                _sweep(directory)
                fetch(broken, directory, repository_address(repository), reporter)
                for jar in broken:
                    _note(jar, directory, stamp)
            _write_stamp(directory, stamp, wanted)
            if broken:
                reporter.say(f"RocketMQ {VERSION}: {len(broken)} jars fetched into {directory}")
    except OSError as problem:
        raise DevBrokerError(
            f"Cannot keep RocketMQ's jars in {directory}: {problem.strerror or problem} "
            f"(set {CACHE_VARIABLE} to put them elsewhere)."
        ) from None
    return directory


def unstamped(jars: Iterable[Jar], directory: Path, stamp: Stamp) -> list[Jar]:
    """The jars that are missing, or are not the files that were last checked."""
    return [jar for jar in jars if _signature(directory / jar.file_name, jar) != stamp.get(jar.file_name)]


def _signature(path: Path, jar: Jar) -> tuple[int, int, str] | None:
    try:
        found = path.stat()
    except OSError:
        return (-1, -1, "")  # never what a stamp says
    return (found.st_size, found.st_mtime_ns, jar.sha256)


def _is_whole(jar: Jar, directory: Path, stamp: Stamp) -> bool:
    """Check a jar by its content, and stamp it if it is right."""
    path = directory / jar.file_name
    try:
        if path.stat().st_size != jar.size:
            return False
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != jar.sha256:
                return False
    except FileNotFoundError:
        return False
    _note(jar, directory, stamp)
    return True


def _note(jar: Jar, directory: Path, stamp: Stamp) -> None:
    found = (directory / jar.file_name).stat()
    stamp[jar.file_name] = (found.st_size, found.st_mtime_ns, jar.sha256)


def _read_stamp(directory: Path) -> Stamp:
    try:
        content = json.loads((directory / STAMP).read_text("utf-8"))
        return {name: (int(size), int(mtime), str(sha256)) for name, (size, mtime, sha256) in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # no stamp, or not ours: then everything is checked


def _write_stamp(directory: Path, stamp: Stamp, jars: Iterable[Jar]) -> None:
    known = {jar.file_name for jar in jars}
    temporary = directory / f".{STAMP}.{os.getpid()}.part"
    temporary.write_text(json.dumps({name: stamp[name] for name in sorted(stamp) if name in known}), "utf-8")
    temporary.replace(directory / STAMP)


def _sweep(directory: Path) -> None:
    """Remove what an interrupted download left; only the holder of the lock writes here, so nobody needs it."""
    for path in directory.glob(".*.part"):
        path.unlink(missing_ok=True)


@contextmanager
def _turn(path: Path, reporter: "Reporter") -> Iterator[None]:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reporter.say("another process is fetching RocketMQ; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
