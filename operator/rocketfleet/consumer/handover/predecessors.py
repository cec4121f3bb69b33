"""Members of this group that have died on this host: whose locks can be released at once.

A member that is killed gives nothing back, and its locks last for a minute. Others that were there release them, but
the only replica of a group has no others: its successor has never seen it, and a broker does not say who holds a lock.
On one host there is a better witness than any broker. Each member keeps a small file with its client id and holds the
operating system's lock on it for as long as it lives. A file that nobody holds is a member that is dead, for certain.

In pods the directory is gone with the pod; there the operator releases the locks.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)
_LOCK_TRIES, _TRY_AGAIN = 40, 0.005


def default_directory() -> Path:
    return Path(tempfile.gettempdir()) / f"rocketfleet-{os.getuid()}" / "members"


class Predecessors:
    """The files of one group at one cluster."""

    def __init__(self, name_servers: Sequence[str], group: str, directory: Path | None = None) -> None:
        self._key = {"nameServers": sorted(name_servers), "group": group}
        name = hashlib.sha256(json.dumps(self._key).encode()).hexdigest()[:16]
        self._directory = (directory or default_directory()) / name
        self._file: int | None = None
        self._path: Path | None = None

    def join(self, client_id: str) -> frozenset[str]:
        """Leave our own file; returns the ids of members that have died here. Does nothing where it cannot write."""
        dead: frozenset[str] = frozenset()
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._directory.stat().st_uid != os.getuid():
                _log.warning("%s belongs to somebody else: what it says of members is not believed", self._directory)
                return dead
            with self._alone():
                dead = self._dead(client_id)
                self._write(client_id)
        except OSError as error:
            _log.debug("no file of member %s: %s", client_id, error)
        return dead

    def leave(self) -> None:
        """We have given everything back: nobody has to look after us."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the file. It stays, unless `leave` was called."""
        if self._file is not None:
            os.close(self._file)
        self._file = self._path = None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One member joins at a time: a file that is not locked yet would be taken for a dead member's.

        Whoever holds this is done in a moment; if not, it is stopped or slow, and is not waited for.
        """
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            for _ in range(_LOCK_TRIES):
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(_TRY_AGAIN)
            yield
        finally:
            os.close(directory)

    def _dead(self, me: str) -> frozenset[str]:
        dead = set()
        for path in sorted(self._directory.glob("*.json")):
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            except OSError:
                continue  # it has just left; or it is no file of ours
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                member = json.loads(os.read(descriptor, 1 << 16))["clientId"]
                if isinstance(member, str) and member != me:
                    dead.add(member)
                path.unlink(missing_ok=True)
            except BlockingIOError:
                continue  # it lives
            except (ValueError, KeyError, TypeError):
                path.unlink(missing_ok=True)
            finally:
                os.close(descriptor)
        return frozenset(dead)

    def _write(self, client_id: str) -> None:
        path = self._directory / f"{hashlib.sha256(client_id.encode()).hexdigest()[:16]}.json"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps({**self._key, "clientId": client_id}).encode())
        except OSError:  # a live member has the same id: the file is its own
            os.close(descriptor)
            raise
        self._file, self._path = descriptor, path
