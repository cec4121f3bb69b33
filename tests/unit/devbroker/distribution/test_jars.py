"""The cache of jars: nothing unchecked is used, nothing good is fetched twice."""

import hashlib
import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from rocketfleet.devbroker.distribution import jars as cache_of_jars
from rocketfleet.devbroker.distribution.jars import STAMP, cache_directory, classpath_of, provide_jars
from rocketfleet.devbroker.distribution.lock import VERSION, Jar
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.reporting import Reporter

CONTENTS = {"one": b"first", "two": b"second", "three": b"third"}
JARS = [
    Jar("g", name, "1", None, hashlib.sha256(content).hexdigest(), len(content)) for name, content in CONTENTS.items()
]


class Source:
    """Writes the right content, and notes which jars it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, jars: Iterable[Jar], directory: Path, repository: str, reporter: Reporter) -> None:
        wanted = list(jars)
        self.asked.append([jar.artifact for jar in wanted])
        for jar in wanted:
            (directory / jar.file_name).write_bytes(CONTENTS[jar.artifact])


@pytest.fixture
def source() -> Source:
    return Source()


def provide(cache: Path, source: Source) -> Path:
    return provide_jars("http://127.0.0.1:1", cache=cache, jars=JARS, fetch=source)


def test_all_are_fetched_once(tmp_path: Path, source: Source) -> None:
    directory = provide(tmp_path, source)
    assert directory == tmp_path / f"rocketmq-{VERSION}"
    assert provide(tmp_path, source) == directory
    assert source.asked == [["one", "two", "three"]]
    assert classpath_of(directory) == f"{directory}/*"


def test_later_starts_do_not_hash_again(tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    provide(tmp_path, source)

    def no_hashing(*_: object) -> bool:
        raise AssertionError("hashed again")

    monkeypatch.setattr(cache_of_jars, "_is_whole", no_hashing)
    provide(tmp_path, source)


@pytest.mark.parametrize("content", [b"", b"sec", b"secOnd", b"second+"])
def test_a_changed_jar_is_noticed_and_fetched_anew(tmp_path: Path, source: Source, content: bytes) -> None:
    jar = provide(tmp_path, source) / "two-1.jar"
    jar.write_bytes(content)
    os.utime(jar, ns=(1, 1))  # whatever the clock's grain: it is another time than at the check
    provide(tmp_path, source)
    assert source.asked[1:] == [["two"]]
    assert jar.read_bytes() == b"second"


def test_a_missing_jar_is_fetched(tmp_path: Path, source: Source) -> None:
    (provide(tmp_path, source) / "three-1.jar").unlink()
    provide(tmp_path, source)
    assert source.asked[1:] == [["three"]]


def test_a_good_jar_that_was_only_touched_is_kept(tmp_path: Path, source: Source) -> None:
    os.utime(provide(tmp_path, source) / "two-1.jar", ns=(1, 1))
    provide(tmp_path, source)
    provide(tmp_path, source)
    assert len(source.asked) == 1


@pytest.mark.parametrize("stamp", ["", "[]", '{"one-1.jar": 5}', "\0", json.dumps({"one-1.jar": [5, 1, "x"]})])
def test_a_spoilt_stamp_costs_a_check_and_nothing_else(tmp_path: Path, source: Source, stamp: str) -> None:
    (provide(tmp_path, source) / STAMP).write_text(stamp)
    provide(tmp_path, source)
    assert len(source.asked) == 1


def test_a_jar_that_a_new_lock_file_wants_otherwise_is_fetched(tmp_path: Path, source: Source) -> None:
    provide(tmp_path, source)
    changed = Jar("g", "one", "1", None, hashlib.sha256(b"other").hexdigest(), len(b"other"))
    asked: list[str] = []

    def fetch(jars: Iterable[Jar], directory: Path, repository: str, reporter: Reporter) -> None:
        for jar in jars:
            asked.append(jar.artifact)
            (directory / jar.file_name).write_bytes(b"other")

    provide_jars("http://127.0.0.1:1", cache=tmp_path, jars=[changed], fetch=fetch)
    assert asked == ["one"]


def test_what_a_killed_download_left_is_swept(tmp_path: Path, source: Source) -> None:
    directory = tmp_path / f"rocketmq-{VERSION}"
    directory.mkdir()
    (directory / ".one-1.jar.77.part").write_bytes(b"fi")
    provide(tmp_path, source)
    assert {path.name for path in directory.iterdir()} == {"one-1.jar", "two-1.jar", "three-1.jar", STAMP}


def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    first_is_fetching, first_may_end = threading.Event(), threading.Event()
    waited = threading.Event()
    source = Source()

    def slow(jars: Iterable[Jar], directory: Path, repository: str, reporter: Reporter) -> None:
        first_is_fetching.set()
        assert first_may_end.wait(30)
        source(jars, directory, repository, reporter)

    class Waits:
        def say(self, line: str) -> None:
            if "waiting" in line:
                waited.set()

        def progress(self, line: str) -> None:
            pass

    first = threading.Thread(target=lambda: provide_jars("http://x", cache=tmp_path, jars=JARS, fetch=slow))
    second = threading.Thread(target=lambda: provide_jars("http://x", Waits(), cache=tmp_path, jars=JARS, fetch=source))
    first.start()
    assert first_is_fetching.wait(30)
    second.start()
    assert waited.wait(30)
    first_may_end.set()
    first.join(30)
    second.join(30)
    assert len(source.asked) == 1


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path, source: Source) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DevBrokerError, match="ROCKETFLEET_CACHE"):
        provide(tmp_path / "file", source)


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETFLEET_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("ROCKETFLEET_CACHE")
    monkeypatch.setenv("HOME", "/nowhere")
    assert cache_directory() == Path("/nowhere/.cache/rocketfleet")
