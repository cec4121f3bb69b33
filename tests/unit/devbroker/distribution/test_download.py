"""Fetching jars from a repository that misbehaves: a real HTTP server on loopback, told what to do wrong."""

import hashlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rocketfleet.devbroker.distribution import download
from rocketfleet.devbroker.distribution.download import DOWNLOAD_TRIES, fetch_all, repository_address
from rocketfleet.devbroker.distribution.lock import Jar
from rocketfleet.devbroker.errors import DownloadError


class Notes:
    """A reporter that keeps what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.states: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    def progress(self, line: str) -> None:
        self.states.append(line)


class Repository:
    """Serves jars; `mischief` is called with (handler, content, how many times this jar was asked for)."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()
        self.mischief: Callable[[BaseHTTPRequestHandler, bytes, int], bool] = lambda handler, content, times: False
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                repository.asked[self.path] += 1
                content = repository.contents.get(self.path)
                if content is None:
                    self.send_error(404)
                elif not repository.mischief(self, content, repository.asked[self.path]):
                    answer(self, content)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/maven2"

    def add(self, name: str, content: bytes) -> Jar:
        jar = Jar("org.example", name, "1", None, hashlib.sha256(content).hexdigest(), len(content))
        self.contents[f"/maven2/{jar.repository_path}"] = content
        return jar


def answer(handler: BaseHTTPRequestHandler, content: bytes, length: int | None = None) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture
def repository() -> Iterator[Repository]:
    made = Repository()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def fetch(jars: list[Jar], directory: Path, repository: str, notes: Notes | None = None) -> list[float]:
    """Fetch without pauses; returns the pauses there would have been."""
    pauses: list[float] = []
    fetch_all(jars, directory, repository, notes or Notes(), sleep=pauses.append)
    return pauses


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_jars_arrive_whole_and_are_counted(tmp_path: Path, repository: Repository) -> None:
    jars = [repository.add(f"jar{number}", bytes([number]) * (1000 * number + 1)) for number in range(20)]
    notes = Notes()
    assert fetch(jars, tmp_path, repository.address, notes) == []
    assert names(tmp_path) == {jar.file_name for jar in jars}
    for number, jar in enumerate(jars):
        assert (tmp_path / jar.file_name).read_bytes() == bytes([number]) * jar.size
    assert notes.states[-1] == "fetching RocketMQ: 20 of 20 jars, 0 of 0 MB"


def _cut(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    answer(handler, content[: len(content) // 2], len(content))
    handler.close_connection = True


def _short(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    answer(handler, content[:-1])


def _corrupt(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    answer(handler, bytes([content[0] ^ 1]) + content[1:])


def _longer(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    answer(handler, content + b"x")


def _overloaded(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    handler.send_error(503)


def _hang_up(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


@pytest.mark.parametrize("wrong", [_cut, _short, _corrupt, _longer, _overloaded, _hang_up])
def test_a_broken_answer_is_said_and_fetched_again(
    tmp_path: Path, repository: Repository, wrong: Callable[[BaseHTTPRequestHandler, bytes], None]
) -> None:
    jar = repository.add("jar", b"content" * 1000)

    def mischief(handler: BaseHTTPRequestHandler, content: bytes, times: int) -> bool:
        if times > 2:
            return False
        wrong(handler, content)
        return True

    repository.mischief = mischief
    notes = Notes()
    assert fetch([jar], tmp_path, repository.address, notes) == [0.5, 1.0]
    retold = [line for line in notes.said + notes.states if "trying again" in line]
    assert len(retold) == 2
    assert all(line.startswith("jar-1.jar: ") for line in retold)
    assert (tmp_path / jar.file_name).read_bytes() == b"content" * 1000
    assert names(tmp_path) == {jar.file_name}
    assert notes.states[-1] == "fetching RocketMQ: 1 of 1 jars, 0 of 0 MB"


def test_what_stays_broken_is_given_up_and_never_used(tmp_path: Path, repository: Repository) -> None:
    jar = repository.add("jar", b"content" * 1000)

    def mischief(handler: BaseHTTPRequestHandler, content: bytes, times: int) -> bool:
        _corrupt(handler, content)
        return True

    repository.mischief = mischief
    with pytest.raises(DownloadError, match="wrong content"):
        fetch([jar], tmp_path, repository.address)
    assert repository.asked.total() == DOWNLOAD_TRIES
    assert names(tmp_path) == set()


def test_a_refusal_ends_it_at_once(tmp_path: Path, repository: Repository) -> None:
    missing = Jar("org.example", "missing", "1", None, "0" * 64, 1 << 40)
    with pytest.raises(DownloadError, match=r"refused org\.example:missing:1: 404 Not Found") as caught:
        fetch([missing], tmp_path, repository.address)
    assert repository.asked.total() == 1
    assert "\n" not in str(caught.value)


def test_without_a_network_it_says_so(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        notes = Notes()
        with pytest.raises(DownloadError, match=r"no connection \(Connection refused\)"):
            fetch([Jar("g", "a", "1", None, "0" * 64, 1)], tmp_path, address, notes)
    assert notes.said == []
    assert names(tmp_path) == set()


def test_a_full_disk_is_not_tried_again(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = repository.add("jar", b"content" * 1000)
    real_open = Path.open

    def open_on_full_disk(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if path.suffix != ".part":
            return real_open(path, mode, *args, **kwargs)
        real_open(path, mode).close()
        return real_open(Path("/dev/full"), mode, buffering=0)

    monkeypatch.setattr(Path, "open", open_on_full_disk)
    with pytest.raises(DownloadError, match="disk is full") as caught:
        fetch([jar], tmp_path, repository.address)
    assert "\n" not in str(caught.value)
    assert repository.asked.total() == 1
    assert names(tmp_path) == set()


def test_the_address_is_given_or_the_environments_or_the_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(download.REPOSITORY_VARIABLE, raising=False)
    public = repository_address()
    assert public.startswith("https://")
    assert not public.endswith("/")
    monkeypatch.setenv(download.REPOSITORY_VARIABLE, "http://127.0.0.1:1/m2/")
    assert repository_address() == "http://127.0.0.1:1/m2"
    assert repository_address("http://127.0.0.1:2") == "http://127.0.0.1:2"
