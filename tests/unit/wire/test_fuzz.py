"""A short run of the fuzzer. Long ones: `python tests/unit/wire/fuzz.py --inputs 1000000 --seed N`."""

import random

import pytest
from tests.unit.wire import fuzz


def test_a_short_run_finds_nothing() -> None:
    assert fuzz.fuzz(20_000, seed=20260101) > 1_000  # many inputs survive: the mutations are not all nonsense


def test_the_corpus_is_readable() -> None:
    for feed, samples in fuzz.corpus():
        for sample in samples:
            feed(sample, random.Random(1))


def test_a_wrong_exception_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: bytes) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(fuzz, "decode", broken)
    with pytest.raises(AssertionError, match=r"feed_\w+ of .* raised KeyError.*--seed 5 --only"):
        fuzz.fuzz(100, seed=5)


def test_too_much_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fuzz, "decode_batch", lambda data, topic: [bytes(50_000_000) for _ in data + topic.encode()][:0]
    )
    with pytest.raises(AssertionError, match=r"feed_batch .* bytes of memory"):
        fuzz.fuzz(100, seed=5)
