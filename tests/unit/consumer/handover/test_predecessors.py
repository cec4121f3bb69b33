"""Members that have died on this host, told by the operating system's own locks: with processes that are killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rocketfleet.consumer.handover.predecessors import Predecessors, default_directory

MEMBER = """
import sys, time
from pathlib import Path
from rocketfleet.consumer.handover.predecessors import Predecessors

member = Predecessors(["ns:9876"], "g", Path(sys.argv[1]))
print(sorted(member.join(sys.argv[2])), flush=True)
time.sleep(600)
"""


class Process:
    """A member in a process of its own."""

    def __init__(self, directory: Path, client_id: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", MEMBER, str(directory), client_id], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.found = self._process.stdout.readline().strip()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        process.kill()


def member(directory: Path, group: str = "g", name_servers: tuple[str, ...] = ("ns:9876",)) -> Predecessors:
    return Predecessors(name_servers, group, directory)


def test_a_member_that_was_killed_is_dead_and_one_that_lives_is_not(tmp_path: Path, processes: list[Process]) -> None:
    processes += [Process(tmp_path, "killed"), Process(tmp_path, "alive"), Process(tmp_path, "frozen")]
    assert [process.found for process in processes] == ["[]", "[]", "[]"]
    processes[2].signal(signal.SIGSTOP)
    processes[0].kill()
    heir = member(tmp_path)
    assert heir.join("heir") == {"killed"}
    another = member(tmp_path)
    assert another.join("another") == frozenset(), "said once: its file is gone"
    processes[1].kill()
    processes[2].kill()
    third = member(tmp_path)
    assert third.join("third") == {"alive", "frozen"}
    for one in (heir, another, third):
        one.leave()


def test_a_successor_with_the_same_id_is_not_its_own_predecessor(tmp_path: Path, processes: list[Process]) -> None:
    processes.append(Process(tmp_path, "stable"))
    processes[0].kill()
    processes.append(Process(tmp_path, "stable"))
    assert processes[1].found == "[]"
    processes[1].kill()
    heir = member(tmp_path)
    assert heir.join("heir") == {"stable"}
    heir.leave()


def test_who_has_given_everything_back_leaves_nothing_behind(tmp_path: Path) -> None:
    first = member(tmp_path)
    first.join("first")
    first.leave()
    first.leave()
    second = member(tmp_path)
    assert second.join("second") == frozenset()
    second.close()
    third = member(tmp_path)
    assert third.join("third") == {"second"}, "who only closes has not given everything back"
    third.leave()
    assert list(tmp_path.rglob("*.json")) == []


def test_groups_and_clusters_have_files_of_their_own(tmp_path: Path) -> None:
    dead = member(tmp_path)
    dead.join("dead")
    dead.close()
    others = [member(tmp_path, "another"), member(tmp_path, "g", ("elsewhere:9876",))]
    assert [other.join("me") for other in others] == [frozenset(), frozenset()]
    same = member(tmp_path, "g", ("ns:9876",))
    assert same.join("me") == {"dead"}
    for one in (*others, same):
        one.leave()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"clientId": 5}', '{"other": 1}', "null"])
def test_a_file_that_nobody_can_read_is_removed(tmp_path: Path, text: str) -> None:
    first = member(tmp_path)
    first.join("first")
    broken = next(tmp_path.rglob("*.json")).with_name("broken.json")
    broken.write_text(text)
    second = member(tmp_path)
    assert second.join("second") == frozenset()
    assert not broken.exists()
    first.leave()
    second.leave()


def test_two_members_with_one_id_do_not_take_each_other_for_dead(tmp_path: Path) -> None:
    first, second, third = member(tmp_path), member(tmp_path), member(tmp_path)
    first.join("same")
    dead = member(tmp_path)
    dead.join("dead")
    dead.close()
    assert second.join("same") == {"dead"}, "what it has found is not lost"
    second.leave()
    assert third.join("third") == frozenset(), "the first one lives, and its file is still there"
    first.close()
    fourth = member(tmp_path)
    assert fourth.join("fourth") == {"same"}
    third.leave()
    fourth.leave()


def test_members_that_join_at_once_all_have_a_file_and_find_each_dead_one_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(12) as threads:
        for turn in range(15):
            gone = {f"dead-{turn}-{number}": member(tmp_path) for number in range(4)}
            for name, one in gone.items():
                one.join(name)
            for one in gone.values():
                one.close()
            members = [member(tmp_path) for _ in range(12)]
            found = list(threads.map(lambda pair: pair[1].join(f"m{pair[0]}"), enumerate(members)))
            assert sorted(name for some in found for name in some) == sorted(gone)
            names = {json.loads(path.read_text())["clientId"] for path in tmp_path.rglob("*.json")}
            assert names == {f"m{number}" for number in range(12)}
            for one in members:
                one.leave()


def test_where_nothing_can_be_written_nothing_is_known(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    nobody = member(in_the_way)
    assert nobody.join("me") == frozenset()
    nobody.leave()
    nobody.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    first = member(tmp_path)
    first.join("first")
    folder = next(tmp_path.rglob("*.json")).parent
    target = tmp_path / "target"
    target.write_text('{"clientId": "victim"}')
    (folder / "link.json").symlink_to(target)
    second = member(tmp_path)
    assert second.join("second") == frozenset()
    assert target.exists()
    assert len([path for path in folder.glob("*.json") if not path.is_symlink()]) == 2, "and it has its own file"
    first.leave()
    second.leave()


def test_the_directory_is_this_users() -> None:
    assert str(os.getuid()) in str(default_directory())
