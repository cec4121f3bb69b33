"""Frames come out whole and in order however the stream is cut, and nonsense is refused before it is buffered."""

import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.wire.errors import FrameError
from rocketfleet.wire.frame import MAX_FRAME_LENGTH, FrameDecoder


def frame(header: bytes = b"{}", body: bytes = b"", form: int = 0) -> bytes:
    return struct.pack(">ii", 4 + len(header) + len(body), form << 24 | len(header)) + header + body


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(stream) + 1) for place in places}), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


frames = st.lists(st.builds(frame, st.binary(max_size=40), st.binary(max_size=60), st.integers(0, 1)), max_size=6)


@given(frames, st.lists(st.integers(0, 1000), max_size=20))
def test_any_chunking_gives_the_same_frames(whole: list[bytes], places: list[int]) -> None:
    decoder = FrameDecoder()
    payloads = [bytes(payload) for chunk in cut(b"".join(whole), places) for payload in decoder.feed(chunk)]
    assert payloads == [one[4:] for one in whole]
    assert decoder.buffered == 0


@given(frames, st.lists(st.integers(0, 1000), max_size=8), st.binary(min_size=8, max_size=30))
def test_any_chunking_gives_the_same_error(whole: list[bytes], places: list[int], tail: bytes) -> None:
    stream = b"".join(whole) + b"HTTP/1.1" + tail

    def read(chunks: list[bytes]) -> tuple[list[bytes], str]:
        decoder = FrameDecoder()
        payloads: list[bytes] = []
        for chunk in chunks:
            try:
                payloads += [bytes(payload) for payload in decoder.feed(chunk)]
            except FrameError as error:
                payloads += [bytes(payload) for payload in error.frames]
                with pytest.raises(FrameError):
                    decoder.feed(b"")  # it never recovers
                assert decoder.buffered == 0
                return payloads, str(error).split(" (its first")[0]
        return payloads, ""

    expected = read([stream])
    assert expected[0] == [one[4:] for one in whole]
    assert "1213486160 bytes" in expected[1]
    assert read(cut(stream, places)) == expected


def test_a_frame_within_a_chunk_is_not_copied() -> None:
    chunk = frame(body=b"x" * 1000) * 3
    payloads = FrameDecoder().feed(chunk)
    assert len(payloads) == 3
    assert all(payload.obj is chunk and payload.readonly for payload in payloads)


def test_a_frame_over_chunks_is_read_only_too() -> None:
    decoder = FrameDecoder()
    one = frame(body=b"x" * 1000)
    assert decoder.feed(one[:500]) == []
    (payload,) = decoder.feed(one[500:])
    assert payload.readonly


@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        (struct.pack(">i", -1), "frame of -1 bytes"),
        (struct.pack(">i", 0), "frame of 0 bytes"),
        (struct.pack(">i", 3), "frame of 3 bytes"),
        (struct.pack(">i", MAX_FRAME_LENGTH - 3), "frame of 16777213 bytes"),
        (struct.pack(">i", 0x7FFFFFFF), "frame of 2147483647 bytes"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),  # an alert: only seven bytes will ever come
        (struct.pack(">iI", 100, 97), "header of 97 bytes in a frame of 100"),
        (struct.pack(">iI", 100, 2 << 24 | 10), "header of form 2"),
    ],
)
def test_nonsense_is_refused_at_once(start: bytes, complaint: str) -> None:
    with pytest.raises(FrameError, match=complaint):
        FrameDecoder().feed(start)

    decoder = FrameDecoder()

    def feed_bytes() -> None:
        for place in range(len(start)):
            decoder.feed(start[place : place + 1])

    with pytest.raises(FrameError, match=complaint):
        feed_bytes()


def test_the_largest_frame_is_accepted() -> None:
    largest = frame(body=bytes(MAX_FRAME_LENGTH - 10))
    assert len(largest) == MAX_FRAME_LENGTH
    (payload,) = FrameDecoder().feed(largest)
    assert len(payload) == MAX_FRAME_LENGTH - 4


def test_the_limit_is_the_callers() -> None:
    assert len(FrameDecoder(max_frame=20).feed(frame(body=b"x" * 10))) == 1
    with pytest.raises(FrameError):
        FrameDecoder(max_frame=20).feed(frame(body=b"x" * 11))


def test_memory_follows_what_came_not_what_was_announced() -> None:
    tracemalloc.start()
    try:
        decoders = [FrameDecoder() for _ in range(100)]
        for decoder in decoders:
            decoder.feed(struct.pack(">ii", MAX_FRAME_LENGTH - 4, 10))
            decoder.feed(b"x" * 100)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_single_bytes_cost_linear_time_and_memory() -> None:
    one = frame(body=b"x" * 20_000)
    decoder = FrameDecoder()
    for place in range(len(one) - 1):
        assert decoder.feed(one[place : place + 1]) == []
    assert decoder.buffered == len(one) - 1
    (payload,) = decoder.feed(one[-1:])
    assert payload == one[4:]
