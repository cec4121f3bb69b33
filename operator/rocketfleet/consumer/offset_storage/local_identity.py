"""Under which name a broadcasting member keeps its offsets, so that it finds them again when it is started anew.

Its file is DIRECTORY/NAME/GROUP/offsets.json. The name is

1. the client id, if somebody chose it (or the instance name in it);
2. in a pod, the pod's name: a pod that is replaced has the same one, and another uid. An id with the uid in it is
   therefore nobody's choice here, though the operator gives it;
3. else a slot of this machine: `slot-0`, `slot-1`, … the first that no living process has.

A lock beside the file is held for as long as the member lives, so no two of them write one file, and what is killed
lets go of it. Locks are a group's: were they a machine's, processes of two groups that start in another order than the
last time would have changed places, and both would find no offsets. Several processes of one pod are `pod`, `pod#1`, …
"""

import fcntl
import itertools
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.variables import POD_NAME_VARIABLE, POD_UID_VARIABLE
from rocketfleet.consumer.offset_storage.local_offsets import LocalOffsets, OffsetFileError
from rocketfleet.consumer.settings import ConsumerSettings

_log = logging.getLogger(__name__)
OFFSETS, LOCK = "offsets.json", "lock"
_LOOKS, _PAUSE = 5, 0.02  # at what a lock's holder says about itself


def open_local_offsets(client: Client, settings: ConsumerSettings, directory: Path) -> LocalOffsets:
    """The offsets of a member that starts now; `close` lets others have its name."""
    place = claim(directory, settings.group, client.config, os.environ)
    try:
        return LocalOffsets(client, settings, place.offsets, let_go=place.release)
    except BaseException:
        place.release()
        raise


class OffsetDirectory:
    """A directory with a member's offsets, and the lock on it: None where the file system has none."""

    def __init__(self, directory: Path, lock: int | None) -> None:
        self.offsets = directory / OFFSETS
        self._lock = lock
        _held.add(self)

    def release(self) -> None:
        """Let others have it. Unlocked, not only closed: a child that was forked has the lock open too."""
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        self.close()

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        _held.discard(self)


_held: set[OffsetDirectory] = set()


def _forked() -> None:
    """A handler's child must not keep the lock when its parent is gone: the parent's successor wants it."""
    for place in list(_held):
        place.close()


os.register_at_fork(after_in_child=_forked)


def claim(directory: Path, group: str, config: ClientConfig, environment: Mapping[str, str]) -> OffsetDirectory:
    """The first place that this member may have. OffsetFileError says why there is none."""
    pod, uid = environment.get(POD_NAME_VARIABLE, ""), environment.get(POD_UID_VARIABLE, "")
    chosen = not config.client_id_made_up and not (uid and f"@{uid}" in config.client_id)
    for name in _names(config.client_id if chosen else "", pod):
        place = directory / name / group
        lock = _opened(place)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process, ours = _holder(lock, uid)
            os.close(lock)
            if chosen:
                raise OffsetFileError(
                    f"another member of group {group} has the client id {name} and keeps its offsets in {place} "
                    f"(process {process}): stop it, or give each member a client id of its own"
                ) from None
            if pod and not ours:
                raise OffsetFileError(
                    f"the offsets in {place} are still held by an earlier pod of this name: wait until it has ended"
                ) from None
        except OSError as error:
            os.close(lock)
            if not chosen and not pod:
                raise OffsetFileError(
                    f"{place} cannot be locked ({error}), so two members might share it: give each a client id of "
                    "its own, or keep the offsets on another file system (--offset-directory)"
                ) from error
            _log.warning("%s cannot be locked (%s); see to it that no other member is called %s", place, error, name)
            return OffsetDirectory(place, None)
        else:
            os.truncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()} {uid}\n".encode(), 0)
            return OffsetDirectory(place, lock)
    raise AssertionError("there is always another name")


def _names(chosen: str, pod: str) -> Iterator[str]:
    if chosen:
        yield chosen
    elif pod:
        yield pod
        yield from (f"{pod}#{number}" for number in itertools.count(1))
    else:
        yield from (f"slot-{number}" for number in itertools.count())


def _opened(place: Path) -> int:
    try:
        place.mkdir(parents=True, exist_ok=True)
        return os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise OffsetFileError(
            f"the offsets of a broadcasting group cannot be kept in {place}: {error}. Make it writable for this user, "
            "or name another directory (offset_directory, --offset-directory)"
        ) from error


def _holder(lock: int, uid: str) -> tuple[str, bool]:
    """The process that has it, and whether it is one of our pod. It says so right after it got the lock."""
    process = theirs = ""
    for _look in range(_LOOKS):
        process, _, theirs = os.pread(lock, 200, 0).decode("utf-8", "replace").rstrip("\n").partition(" ")
        if process and theirs == uid:
            return process, True
        time.sleep(_PAUSE)
    return process, False
