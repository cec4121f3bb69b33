"""Keys that are renewed in their file while the client runs, and calls that were signed with the old ones."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING

import pytest
from tests.support.waiting import until
from tests.unit.client.peer import Channel, Peer

from rocketfleet.client import client as client_module
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.transport import keys as keys_module
from rocketfleet.client.transport.keys import Keys, read_credentials
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.acl import ACCESS_KEY, Credentials
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, request

if TYPE_CHECKING:
    from pathlib import Path

MAX = RequestCode.GET_MAX_OFFSET
OLD, NEW = Credentials("old", "old-secret"), Credentials("new", "new-secret", "token")


def write(path: Path, credentials: Credentials) -> None:
    path.write_text(f"accessKey: {credentials.access_key}\nsecretKey: {credentials.secret_key}\n")


class Mounted:
    """A Secret as the kubelet mounts it: files are links into `..data`, which is a link to a directory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._count = 0
        place.mkdir()

    def put(self, credentials: Credentials) -> None:
        self._count += 1
        content = self.place / f"..{self._count}"
        content.mkdir()
        (content / "accessKey").write_text(credentials.access_key)
        (content / "secretKey").write_text(f"{credentials.secret_key}\n")
        if credentials.security_token:
            (content / "securityToken").write_text(credentials.security_token)
        for name in ("accessKey", "secretKey", "securityToken"):
            link = self.place / name
            if (content / name).exists() and not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        draft = self.place / "..data_tmp"
        draft.symlink_to(content.name)
        draft.replace(self.place / "..data")


def test_a_file_that_is_written_anew_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    write(file, OLD)
    keys = Keys(path=str(file))
    assert keys.current == OLD
    assert not keys.refresh()
    write(file, Credentials("new", "new-secret"))
    assert keys.refresh()
    assert keys.current == Credentials("new", "new-secret")
    assert not keys.refresh()


def test_a_secret_that_the_kubelet_swaps_is_taken_whole(tmp_path: Path) -> None:
    mounted = Mounted(tmp_path / "secret")
    mounted.put(OLD)
    keys = Keys(path=str(mounted.place))
    assert keys.current == OLD
    mounted.put(NEW)
    assert keys.refresh()
    assert keys.current == NEW


def test_a_swap_in_the_middle_of_a_look_is_not_half_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = Mounted(tmp_path / "secret")
    mounted.put(OLD)
    keys = Keys(path=str(mounted.place))
    mounted.put(Credentials("between", "between-secret"))
    reads = []

    def read(path: Path) -> Credentials:
        found = read_credentials(path)
        reads.append(found)
        if len(reads) == 1:
            mounted.put(NEW)
            return Credentials(found.access_key, "new-secret")  # one file of before, one of after
        return found

    monkeypatch.setattr(keys_module, "read_credentials", read)
    assert keys.refresh()
    assert keys.current == NEW


def test_what_is_half_written_leaves_the_keys_as_they_were_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys"
    write(file, OLD)
    keys = Keys(path=str(file))
    file.write_text("accessKey: new\nsecretK")
    with caplog.at_level(logging.WARNING):
        assert not keys.refresh()
        assert not keys.refresh()
    assert keys.current == OLD
    (record,) = caplog.records
    assert "has no secretKey" in record.getMessage()
    file.unlink()
    assert not keys.refresh()
    assert keys.current == OLD
    write(file, Credentials("new", "new-secret"))
    assert keys.refresh()


def test_no_secret_is_in_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys"
    write(file, OLD)
    keys = Keys(path=str(file))
    write(file, NEW)
    with caplog.at_level(logging.DEBUG):
        keys.refresh()
    assert caplog.records
    assert "secret" not in caplog.text.replace(str(tmp_path), "")


def test_nothing_is_read_while_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    write(file, OLD)
    keys = Keys(path=str(file))

    def read(path: Path) -> Credentials:
        raise AssertionError("the file was read")

    monkeypatch.setattr(keys_module, "read_credentials", read)
    for _ in range(100):
        assert not keys.refresh()


def test_a_file_that_is_missing_at_the_beginning_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read credentials from .*absent"):
        Keys(path=str(tmp_path / "absent"))


def only(access_key: str) -> object:
    """A broker that knows one user."""

    def answer(channel: Channel, command: Command) -> None:
        allowed = command.fields.get(ACCESS_KEY) == access_key
        channel.answer(command, ResponseCode.SUCCESS if allowed else ResponseCode.NO_PERMISSION)

    return answer


async def test_a_call_that_is_refused_is_made_again_with_keys_that_were_renewed(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    write(file, OLD)
    async with Peer(only("new")) as peer:  # type: ignore[arg-type] # a script
        remoting = Remoting(ClientConfig("127.0.0.1:1", credentials_path=str(file)))
        assert (await remoting.call(peer.address, request(MAX))).code == ResponseCode.NO_PERMISSION
        write(file, NEW)
        answers = await asyncio.gather(*(remoting.call(peer.address, request(MAX)) for _ in range(20)))
        assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}  # all that were under way, not the first
        assert len(peer.channels) == 1
        await remoting.close()


async def test_a_call_that_is_refused_for_good_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    write(file, OLD)
    async with Peer(only("nobody")) as peer:  # type: ignore[arg-type] # a script
        remoting = Remoting(ClientConfig("127.0.0.1:1", credentials_path=str(file)))
        assert (await remoting.call(peer.address, request(MAX))).code == ResponseCode.NO_PERMISSION
        assert len(peer.received) == 1
        os.utime(file)  # touched, but the same
        assert (await remoting.call(peer.address, request(MAX))).code == ResponseCode.NO_PERMISSION
        assert len(peer.received) == 2
        await remoting.close()


async def test_a_client_follows_its_file_before_anybody_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "KEYS_SECONDS", 0.01)
    file = tmp_path / "keys"
    write(file, OLD)
    async with Peer() as peer, Client(ClientConfig("127.0.0.1:1", credentials_path=str(file))) as client:
        await client.remoting.call(peer.address, request(MAX))
        write(file, NEW)
        await until(lambda: client.remoting.keys.current == Credentials("new", "new-secret"))
        await client.remoting.call(peer.address, request(MAX))
        assert [command.fields[ACCESS_KEY] for command in peer.received] == ["old", "new"]
