"""The splitter against the plain definition of a line, however the stream is cut into chunks."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.cli.sending.lines import Line, LineSplitter


def split(chunks: list[bytes], limit: int) -> list[Line]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.finish()


def by_definition(stream: bytes, limit: int) -> list[Line]:
    pieces = stream.split(b"\n")
    if not pieces[-1]:
        pieces.pop()
    bodies = [piece.removesuffix(b"\r") for piece in pieces]
    return [Line(i, body if len(body) <= limit else None) for i, body in enumerate(bodies, 1)]


@given(st.lists(st.text("ab\r\n", max_size=12).map(str.encode)), st.integers(1, 6))
def test_chunks_do_not_matter(chunks: list[bytes], limit: int) -> None:
    assert split(chunks, limit) == by_definition(b"".join(chunks), limit)


def test_a_long_line_is_reported_and_the_rest_goes_on() -> None:
    assert split([b"one\n", b"x" * 50, b"x" * 50 + b"\ntwo"], 10) == [Line(1, b"one"), Line(2, None), Line(3, b"two")]


def test_a_stream_without_line_ends_is_not_kept() -> None:
    splitter = LineSplitter(limit=1000)
    for _ in range(100):
        assert splitter.feed(b"x" * 600) == []
        assert splitter._held <= 1001
    assert splitter.finish() == [Line(1, None)]
