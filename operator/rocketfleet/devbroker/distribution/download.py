"""Fetching jars: a few at a time, each checked before it gets its name, a broken one fetched again.

A jar is written under a temporary name in the directory where it will live, checked by size and SHA-256, and only then
renamed. So a file with a jar's name is a whole jar, whatever was interrupted. What the network may cure by itself (a
cut connection, a wrong byte, an overloaded server) is tried again a few times with growing pauses; what it will not
cure (the repository says no, the disk is full) ends the whole download at once with one sentence.
"""

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rocketfleet.devbroker.errors import DevBrokerError, DownloadError

if TYPE_CHECKING:
    import requests

    from rocketfleet.devbroker.distribution.lock import Jar
    from rocketfleet.devbroker.reporting import Reporter

REPOSITORY_VARIABLE = "ROCKETFLEET_MAVEN_REPOSITORY"
THREADS = 8
DOWNLOAD_TRIES = 5
FIRST_PAUSE_SECONDS = 0.5
TIMEOUT_SECONDS = (10.0, 30.0)  # to connect, and between two pieces of an answer
PIECE = 1 << 16


class _BrokenAnswerError(Exception):
    """This try failed in a way the next one may not."""


class _NoConnectionError(_BrokenAnswerError):
    """Nothing came at all."""


class _CancelledError(Exception):
    """Another jar has failed for good, so this one is not needed any more."""


def repository_address(given: str | None = None) -> str:
    """The base of Maven's repository: what was given, the environment's, else the one that `maven-artifact` knows."""
    address = given or os.environ.get(REPOSITORY_VARIABLE)
    if not address:
        try:
            from maven_artifact import Downloader
        except ImportError:
            raise DevBrokerError(
                "Fetching RocketMQ needs the packages of the `broker` extra: in a checkout, pip install '.[broker]'."
            ) from None
        address = str(Downloader().resolver.base)
    return address.rstrip("/")


def fetch_all(
    jars: Iterable["Jar"],
    directory: Path,
    repository: str,
    reporter: "Reporter",
    *,
    sleep: Callable[[float], object] | None = None,
) -> None:
    """Fetch jars into a directory. Returns when every one is there and checked, raises a DevBrokerError otherwise."""
    try:
        import requests
    except ImportError:
        raise DevBrokerError(
            "Fetching RocketMQ needs the packages of the `broker` extra: in a checkout, pip install '.[broker]'."
        ) from None
    wanted = sorted(jars, key=lambda jar: -jar.size)  # a big one begun last would be waited for alone
    tally = _Tally(len(wanted), sum(jar.size for jar in wanted), reporter)
    fetcher = _Fetcher(directory, repository, tally, reporter, sleep)
    with requests.Session() as session:
        adapter = requests.adapters.HTTPAdapter(pool_maxsize=THREADS)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="jar") as pool:
            futures = [pool.submit(fetcher.fetch, session, jar) for jar in wanted]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                fetcher.cancelled.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise


class _Tally:
    """How much has come so far; a try that failed is taken off again."""

    def __init__(self, jars: int, size: int, reporter: "Reporter") -> None:
        self._jars, self._size, self._reporter = jars, size, reporter
        self._done_jars = self._done_bytes = 0
        self._lock = threading.Lock()

    def add(self, size: int, jars: int = 0) -> None:
        with self._lock:
            self._done_bytes += size
            self._done_jars += jars
            self._reporter.progress(
                f"fetching RocketMQ: {self._done_jars} of {self._jars} jars, "
                f"{self._done_bytes / 1e6:.0f} of {self._size / 1e6:.0f} MB"
            )


class _Fetcher:
    def __init__(
        self,
        directory: Path,
        repository: str,
        tally: _Tally,
        reporter: "Reporter",
        sleep: Callable[[float], object] | None,
    ) -> None:
        self.cancelled = threading.Event()
        self._directory, self._repository, self._tally = directory, repository, tally
        self._reporter, self._sleep = reporter, sleep or self.cancelled.wait

    def fetch(self, session: "requests.Session", jar: "Jar") -> None:
        for attempt in range(1, DOWNLOAD_TRIES + 1):
            try:
                self._try(session, jar)
            except _BrokenAnswerError as problem:
                if attempt == DOWNLOAD_TRIES:
                    raise DownloadError(
                        f"Could not fetch {jar.coordinates} from {self._repository} in {DOWNLOAD_TRIES} tries; the "
                        f"last one: {problem}. "
                        f"Check the network, or name another repository by --repository or {REPOSITORY_VARIABLE}."
                    ) from None
                pause = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
                retold = f"{jar.file_name}: {problem}; trying again in {pause:g} s ({attempt} of {DOWNLOAD_TRIES})"
                if isinstance(problem, _NoConnectionError):
                    self._reporter.progress(retold)  # it is the same for every jar: no line for each
                else:
                    self._reporter.say(retold)
                self._sleep(pause)
            except _CancelledError:
                return
            else:
                return

    def _try(self, session: "requests.Session", jar: "Jar") -> None:
        target = self._directory / jar.file_name
        part = target.with_name(f".{jar.file_name}.{os.getpid()}.part")
        received = 0
        try:
            digest = hashlib.sha256()
            with part.open("wb") as file:
                for piece in self._pieces(session, jar):
                    received += len(piece)
                    digest.update(piece)
                    file.write(piece)
                    self._tally.add(len(piece))
                    if received > jar.size:
                        break
            _check(jar, received, digest.hexdigest())
            part.replace(target)
            self._tally.add(0, jars=1)
        except BaseException as problem:
            self._tally.add(-received)
            with suppress(OSError):
                part.unlink(missing_ok=True)
            if isinstance(problem, OSError):
                raise DownloadError(_disk_problem(problem, self._directory)) from None
            raise

    def _pieces(self, session: "requests.Session", jar: "Jar") -> Iterable[bytes]:
        if self.cancelled.is_set():
            raise _CancelledError
        try:
            with session.get(
                f"{self._repository}/{jar.repository_path}", stream=True, timeout=TIMEOUT_SECONDS
            ) as answer:
                if answer.status_code in (408, 425, 429) or answer.status_code >= 500:
                    raise _BrokenAnswerError(f"the repository answered {answer.status_code} {answer.reason}")
                if answer.status_code != 200:
                    raise DownloadError(
                        f"The repository {self._repository} refused {jar.coordinates}: "
                        f"{answer.status_code} {answer.reason}. "
                        f"Name another one by --repository or {REPOSITORY_VARIABLE}."
                    )
                for piece in answer.iter_content(PIECE):
                    if self.cancelled.is_set():
                        raise _CancelledError
                    yield piece
        except _request_errors() as problem:
            raise _network_problem(problem) from None


def _check(jar: "Jar", received: int, sha256: str) -> None:
    if received > jar.size:
        raise _BrokenAnswerError(f"came longer than the {jar.size} bytes expected")
    if received < jar.size:
        raise _BrokenAnswerError(f"came cut short, {received} of {jar.size} bytes")
    if sha256 != jar.sha256:
        raise _BrokenAnswerError("came with wrong content (its SHA-256 differs)")


def _request_errors() -> tuple[type[OSError], ...]:
    import requests

    return (requests.RequestException,)


def _network_problem(problem: BaseException) -> _BrokenAnswerError:
    """The innermost reason: requests wraps it in layers that each repeat the address."""
    import requests

    if isinstance(problem, requests.Timeout):
        return _NoConnectionError("no answer in time")
    inner: BaseException | None = problem
    reason = ""
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            reason = inner.strerror
        inner = inner.__context__ or inner.__cause__
    if isinstance(problem, requests.ConnectionError) and not isinstance(
        problem, requests.exceptions.ChunkedEncodingError
    ):
        return _NoConnectionError(f"no connection ({reason or type(problem).__name__})")
    return _BrokenAnswerError(f"the connection was cut ({reason or type(problem).__name__})")


def _disk_problem(problem: OSError, directory: Path) -> str:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"The disk is full: RocketMQ's jars need about 110 MB in {directory} "
            "(set ROCKETFLEET_CACHE to put them elsewhere)."
        )
    return (
        f"Cannot write to {directory}: {problem.strerror or problem} (set ROCKETFLEET_CACHE to put the jars elsewhere)."
    )
