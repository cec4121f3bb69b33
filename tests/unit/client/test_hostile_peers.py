"""Peers that send nonsense, too much, too little, or do not read: each harms its own connection at the most."""

from __future__ import annotations

import asyncio
import os
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED, until
from tests.unit.client.peer import Channel, Peer, obedient

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectionLost, ProtocolError, RequestTimeout
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command, encode, reply_to, request

MAX = RequestCode.GET_MAX_OFFSET
QUICK = ClientConfig("127.0.0.1:1", timeout=5.0)


@pytest.mark.parametrize(
    ("nonsense", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "frame of 1213486160 bytes"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "Check that the address is a RocketMQ remoting port"),
        (struct.pack(">ii", 1 << 30, 10), "frame of 1073741824 bytes"),
        (struct.pack(">ii", -1, 10), "frame of -1 bytes"),
        (struct.pack(">ii", 20, 17) + b"x" * 16, "header of 17 bytes in a frame of 20"),
        (struct.pack(">ii", 20, 9 << 24) + b"x" * 16, "header of form 9"),
        (struct.pack(">ii", 8, 4) + b"{[(<", "header is not JSON"),
        (struct.pack(">ii", 8, 4) + b"null", "not an object"),
    ],
)
async def test_nonsense_closes_that_connection_with_a_clear_error(nonsense: bytes, says: str) -> None:
    async with Peer(lambda channel, _: channel.raw(nonsense)) as bad, Peer() as good:
        remoting = Remoting(QUICK)
        await remoting.connect(good.address)
        with pytest.raises(ProtocolError) as caught:
            await remoting.call(bad.address, request(MAX))
        assert str(caught.value).startswith(f"GET_MAX_OFFSET (30) to {bad.address}: the connection was closed, because")
        assert says in str(caught.value)
        await until(lambda: bad.address not in remoting.connected)
        assert (await remoting.call(good.address, request(MAX))).code == 0
        assert len(good.channels) == 1
        await remoting.close()


async def test_answers_before_the_nonsense_still_count() -> None:
    held: list[Command] = []

    def script(channel: Channel, command: Command) -> None:
        held.append(command)
        if len(held) == 2:
            channel.raw(encode(reply_to(held[0], 0, None, {"offset": 7})) + b"nonsense")

    async with Peer(script) as peer:
        remoting = Remoting(QUICK)
        good, bad = await asyncio.gather(
            *(remoting.call(peer.address, request(MAX)) for _ in range(2)), return_exceptions=True
        )
        assert isinstance(good, Command)
        assert good.fields == {"offset": "7"}
        assert isinstance(bad, ProtocolError)
        await remoting.close()


async def test_a_frame_cut_short_says_so() -> None:
    def script(channel: Channel, command: Command) -> None:
        channel.raw(encode(reply_to(command, body=b"x" * 1000))[:500])
        channel.hang_up()

    async with Peer(script) as peer:
        remoting = Remoting(QUICK)
        with pytest.raises(ConnectionLost, match="in the middle of a frame, after 500 bytes"):
            await remoting.call(peer.address, request(MAX))
        await remoting.close()


@settings(UNTIMED, max_examples=60)
@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=4), st.booleans())
def test_random_bytes_end_in_an_error_of_ours_and_nothing_else(chunks: list[bytes], after_an_answer: bool) -> None:
    problems: list[object] = []

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))

        async def script(channel: Channel, command: Command) -> None:
            if after_an_answer:
                channel.answer(command)
            for chunk in chunks:
                channel.raw(chunk)
                await channel.writer.drain()
            channel.hang_up()

        async with Peer(script) as peer:
            remoting = Remoting(QUICK)
            outcomes = await asyncio.gather(remoting.call(peer.address, request(MAX)), return_exceptions=True)
            assert isinstance(outcomes[0], Command | ProtocolError | ConnectionLost)
            await remoting.close()

    asyncio.run(play())
    assert problems == []


async def test_an_endless_frame_is_held_only_up_to_the_limit() -> None:
    """The peer announces the largest frame allowed and drips it; another announces more than that and gets nowhere."""

    async def drip(channel: Channel, command: Command) -> None:
        del command
        channel.raw(struct.pack(">ii", 16 * 1024 * 1024 - 4, 100))
        for _ in range(64):
            channel.raw(b"x" * 65536)
            await channel.writer.drain()

    async with Peer(drip) as peer:
        remoting = Remoting(QUICK)
        tracemalloc.start()
        call = asyncio.create_task(remoting.call(peer.address, request(MAX)))
        await until(lambda: peer.address in remoting.connected)
        decoder = remoting._connections[peer.address]._decoder
        await until(lambda: decoder.buffered >= 64 * 65536)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 3 * 64 * 65536  # what came, not what was announced
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await remoting.close()


async def test_a_peer_that_does_not_read_holds_up_its_callers_and_no_memory() -> None:
    release = asyncio.Event()

    async def stop_reading(_channel: Channel) -> None:
        await release.wait()

    async with Peer(on_open=stop_reading) as slow, Peer() as good:
        remoting = Remoting(QUICK)
        body = os.urandom(1024 * 1024)
        calls = [asyncio.create_task(remoting.call(slow.address, request(MAX, body=body), 30)) for _ in range(40)]
        await until(lambda: slow.address in remoting.connected and remoting._connections[slow.address]._paused)
        connection = remoting._connections[slow.address]
        assert connection._transport is not None
        assert connection._transport.get_write_buffer_size() < 3 * 1024 * 1024
        assert (await remoting.call(good.address, request(MAX))).code == 0  # others are not held up
        # What gives up while it waits is never sent.
        for call in calls[20:]:
            call.cancel()
        with pytest.raises(RequestTimeout):
            await remoting.call(slow.address, request(MAX, {"late": 1}), timeout=0.05)
        with pytest.raises(RequestTimeout):
            await remoting.oneway(slow.address, request(MAX, {"late": 2}), timeout=0.05)
        release.set()
        answers = await asyncio.gather(*calls[:20])
        assert {bytes(answer.body) for answer in answers} == {body}
        assert (await remoting.call(slow.address, request(MAX))).code == 0
        assert len(slow.received) < 40
        assert not any("late" in command.fields for command in slow.received)
        assert not connection._pending
        await remoting.close()


async def test_a_request_too_large_for_a_frame_is_refused_before_it_is_sent() -> None:
    async with Peer() as peer:
        remoting = Remoting(QUICK)
        with pytest.raises(ValueError, match="too large for one frame"):
            await remoting.call(peer.address, request(MAX, body=bytes(17 * 1024 * 1024)))
        assert not remoting._connections[peer.address]._pending
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        await remoting.close()


async def test_large_answers_arrive_whole() -> None:
    def script(channel: Channel, command: Command) -> None:
        size = int(command.fields["size"])
        channel.answer(command, body=bytes([size % 251]) * size)

    async with Peer(script) as peer:
        remoting = Remoting(QUICK)
        for size in (0, 1, 65535, 262144, 262145, 8 * 1024 * 1024):
            answer = await remoting.call(peer.address, request(MAX, {"size": size}))
            assert bytes(answer.body) == bytes([size % 251]) * size
        await remoting.close()


async def test_a_remark_in_a_foreign_encoding_is_shown_as_well_as_it_can_be() -> None:
    def script(channel: Channel, command: Command) -> None:
        header = f'{{"code":1,"flag":1,"language":"JAVA","opaque":{command.opaque},"version":473,"remark":"'.encode()
        header += "没有权限".encode("gbk") + b'"}'
        channel.raw(struct.pack(">ii", 4 + len(header), len(header)) + header)

    async with Peer(script) as peer:
        remoting = Remoting(QUICK)
        answer = await remoting.call(peer.address, request(MAX))
        assert answer.code == 1
        assert "�" in (answer.remark or "")
        peer.script = obedient
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        assert len(peer.channels) == 1
        await remoting.close()
