"""Bodies survive compression, broken ones are reported, and a bomb does not get the memory it asks for."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import sysflag
from rocketfleet.wire.message.compression import Compression, compress, compression_of, decompress

kinds = st.sampled_from(Compression)
every_kind = pytest.mark.parametrize("kind", Compression)


@given(st.binary(max_size=2000) | st.integers(0, 300_000).map(lambda size: bytes(range(256)) * (size // 256)), kinds)
def test_bodies_survive(body: bytes, kind: Compression) -> None:
    assert decompress(memoryview(compress(body, kind)), kind) == body


@every_kind
def test_large_bodies_survive(kind: Compression) -> None:
    body = bytes(range(256)) * 80_000
    assert decompress(compress(body, kind), kind) == body


@every_kind
def test_the_limit_is_exact(kind: Compression) -> None:
    compressed = compress(b"x" * 100_000, kind)
    assert decompress(compressed, kind, limit=100_000) == b"x" * 100_000
    with pytest.raises(MessageError, match="more than 99999 bytes"):
        decompress(compressed, kind, limit=99_999)


@every_kind
def test_a_bomb_does_not_get_its_memory(kind: Compression) -> None:
    bomb = compress(bytes(30_000_000), kind)
    limit = 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(MessageError, match="more than"):
            decompress(bomb, kind, limit=limit)
        assert tracemalloc.get_traced_memory()[1] < 3 * limit
    finally:
        tracemalloc.stop()


@every_kind
def test_a_small_body_takes_little_memory(kind: Compression) -> None:
    compressed = compress(b"hello " * 20, kind)
    tracemalloc.start()
    try:
        decompress(compressed, kind)
        assert tracemalloc.get_traced_memory()[1] < 300_000
    finally:
        tracemalloc.stop()


@every_kind
@pytest.mark.parametrize("body", [b"hello " * 20, bytes(range(256)) * 2000], ids=["small", "blocks"])
def test_a_cut_body_is_an_error(kind: Compression, body: bytes) -> None:
    compressed = compress(body, kind)
    for end in range(1, len(compressed), max(1, len(compressed) // 50)):
        with pytest.raises(MessageError, match=kind.name):
            decompress(compressed[:end], kind)


@given(st.binary(min_size=1, max_size=100), kinds)
def test_garbage_is_a_message_error(garbage: bytes, kind: Compression) -> None:
    try:
        decompress(garbage, kind, limit=10_000)
    except MessageError:
        return


@pytest.mark.parametrize("kind", [Compression.LZ4, Compression.ZSTD])
def test_frames_one_after_another_are_one_body(kind: Compression) -> None:
    assert decompress(compress(b"one", kind) + compress(b"two", kind), kind) == b"onetwo"
    with pytest.raises(MessageError):
        decompress(compress(b"one", kind) + b"rest", kind)


@every_kind
def test_nothing_stands_for_nothing(kind: Compression) -> None:
    assert decompress(b"", kind) == b""
    assert decompress(compress(b"", kind), kind) == b""


def test_the_system_flag_says_which() -> None:
    assert compression_of(0) is None
    assert compression_of(Compression.LZ4 << 8) is None
    assert compression_of(sysflag.COMPRESSED) is Compression.ZLIB
    for kind in Compression:
        assert compression_of(kind.flag) is kind
    with pytest.raises(MessageError, match="type 4"):
        compression_of(sysflag.COMPRESSED | 4 << 8)
