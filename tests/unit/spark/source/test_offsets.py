"""Offsets as text: what is written is read back, and what a user got wrong is one sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.spark.source.errors import SourceError
from rocketfleet.spark.source.offsets import flat, nested, parse
from rocketfleet.wire.queue import MessageQueue

names = st.text("abc-_", min_size=1, max_size=4)
queues = st.builds(MessageQueue, names, names, st.integers(0, 20))
offsets = st.dictionaries(queues, st.integers(0, 1 << 60), min_size=1)


@given(offsets)
def test_what_is_written_is_read_back(given_offsets: dict[MessageQueue, int]) -> None:
    assert flat(json.loads(json.dumps(nested(given_offsets)))) == given_offsets
    assert parse(json.dumps(nested(given_offsets)), "startingOffsets") == given_offsets


@given(offsets, st.randoms())
def test_the_text_does_not_depend_on_the_order_of_the_queues(
    given_offsets: dict[MessageQueue, int], random: object
) -> None:
    items = list(given_offsets.items())
    random.shuffle(items)  # type: ignore[attr-defined]  # hypothesis hands out a random.Random
    assert json.dumps(nested(dict(items))) == json.dumps(nested(given_offsets))


def test_queues_are_in_the_order_of_their_numbers() -> None:
    table = nested({MessageQueue("t", "b", number): 0 for number in (10, 9, 2)})
    assert list(table["t"]["b"]) == ["2", "9", "10"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("soonest", "startingOffsets is neither a keyword nor JSON"),
        ("[1]", "an object for the topics"),
        ('{"t": 3}', "an object for the brokers of t"),
        ('{"t": {"b": 3}}', "an object for the queues of t@b"),
        ('{"t": {"b": {"x": 3}}}', "has a queue 'x' in t@b: queues are numbers"),
        ('{"t": {"b": {"0": "3"}}}', 'has "3" for t@b/0: give an offset'),
        ('{"t": {"b": {"0": -3}}}', "has -3 for t@b/0"),
        ('{"t": {"b": {"0": true}}}', "has true for t@b/0"),
        ("{}", "names no queue"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=said.replace("(", r"\(")) as caught:
        parse(text, "startingOffsets")
    assert "\n" not in str(caught.value)
