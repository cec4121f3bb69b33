"""Under which name offsets are kept, and that no two members have one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.offset_storage.local_identity import OffsetDirectory, claim
from rocketfleet.consumer.offset_storage.local_offsets import OffsetFileError

NAMELESS = ClientConfig("a:1")
POD = {"POD_NAME": "prices-0", "POD_UID": "1234"}
HOLD = """
import sys
from pathlib import Path
from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.offset_storage.local_identity import claim
place = claim(Path(sys.argv[1]), "g", ClientConfig("a:1"), {})
print(place.offsets, flush=True)
sys.stdin.read()
"""


def named(directory: Path, place: OffsetDirectory) -> str:
    """Its name; it has to be a directory of the group's."""
    assert place.offsets.parent.name == "g"
    assert place.offsets.name == "offsets.json"
    return str(place.offsets.parent.parent.relative_to(directory))


@pytest.mark.parametrize(
    ("config", "environment", "name"),
    [
        (ClientConfig("a:1", client_id="mine"), {}, "mine"),
        (ClientConfig("a:1", client_id="mine"), POD, "mine"),
        (ClientConfig("a:1", client_id="room@prices-0@1234"), POD, "prices-0"),
        (ClientConfig("a:1", client_id="prices-0@1234#3"), POD, "prices-0"),
        (ClientConfig("a:1", client_id="prices-0@1234"), {}, "prices-0@1234"),
        (ClientConfig("a:1", client_id="made-up", client_id_made_up=True), {}, "slot-0"),
        (NAMELESS, {}, "slot-0"),
        (NAMELESS, POD, "prices-0"),
        (NAMELESS, {"POD_NAME": "prices-0"}, "prices-0"),
    ],
)
def test_whose_name_it_is(tmp_path: Path, config: ClientConfig, environment: dict[str, str], name: str) -> None:
    place = claim(tmp_path, "g", config, environment)
    assert named(tmp_path, place) == name
    place.release()
    place.release()


def test_an_instance_name_is_a_choice_too(tmp_path: Path) -> None:
    config = ClientConfig("a:1", instance_name="left")
    place = claim(tmp_path, "g", config, {})
    assert named(tmp_path, place) == config.client_id
    place.release()


@pytest.mark.parametrize(
    ("environment", "names"),
    [({}, ["slot-0", "slot-1", "slot-2"]), (POD, ["prices-0", "prices-0#1", "prices-0#2"])],
)
def test_each_has_the_first_that_is_free(tmp_path: Path, environment: dict[str, str], names: list[str]) -> None:
    places = [claim(tmp_path, "g", NAMELESS, environment) for _ in range(3)]
    assert [named(tmp_path, place) for place in places] == names
    places[1].release()
    places[1] = claim(tmp_path, "g", NAMELESS, environment)
    assert named(tmp_path, places[1]) == names[1]
    other = claim(tmp_path, "another-group", NAMELESS, environment)
    assert other.offsets.parent.parent.name == names[0], "names are a group's"
    for place in (*places, other):
        place.release()


def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == str(tmp_path / "slot-0" / "g" / "offsets.json")
        second = claim(tmp_path, "g", NAMELESS, {})
        assert named(tmp_path, second) == "slot-1"
        second.release()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    place = claim(tmp_path, "g", NAMELESS, {})
    assert named(tmp_path, place) == "slot-0"
    place.release()


def test_a_child_that_was_forked_does_not_hold_the_lock(tmp_path: Path) -> None:
    place = claim(tmp_path, "g", NAMELESS, {})
    (ready, tell), (gone, end) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.write(tell, b"!")
        os.read(gone, 1)  # until the parent lets go of its end
        os._exit(0)
    try:
        os.read(ready, 1)
        place.close()  # as by the end of the parent, which unlocks nothing
        again = claim(tmp_path, "g", NAMELESS, {})
        assert named(tmp_path, again) == "slot-0"
        again.release()
    finally:
        for number in (ready, tell, gone, end):
            os.close(number)
        os.waitpid(child, 0)


def test_two_members_must_not_have_one_client_id(tmp_path: Path) -> None:
    config = ClientConfig("a:1", client_id="mine")
    place = claim(tmp_path, "g", config, {})
    with pytest.raises(OffsetFileError, match=rf"client id mine .* \(process {os.getpid()}\): stop it"):
        claim(tmp_path, "g", config, {})
    place.release()
    claim(tmp_path, "g", config, {}).release()


def test_an_earlier_pod_is_waited_for(tmp_path: Path) -> None:
    """On a volume that both nodes have: under another name it would begin anew, and skip."""
    place = claim(tmp_path, "g", NAMELESS, POD)
    with pytest.raises(OffsetFileError, match="still held by an earlier pod"):
        claim(tmp_path, "g", NAMELESS, {**POD, "POD_UID": "5678"})
    place.release()
    claim(tmp_path, "g", NAMELESS, {**POD, "POD_UID": "5678"}).release()


def test_a_directory_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OffsetFileError, match=r"cannot be kept in .*Make it writable .*--offset-directory"):
        claim(tmp_path / "file", "g", NAMELESS, {})


def test_without_locks_only_chosen_names_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(OffsetFileError, match=r"cannot be locked .*client id of its own"):
        claim(tmp_path, "g", NAMELESS, {})
    for config, environment in ((ClientConfig("a:1", client_id="mine"), {}), (NAMELESS, POD)):
        place = claim(tmp_path, "g", config, environment)
        assert named(tmp_path, place) in ("mine", "prices-0")
        place.release()
