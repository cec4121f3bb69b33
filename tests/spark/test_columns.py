"""From stored messages to Arrow: the short way and the long way agree, and both with what was stored."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from rocketfleet.spark.source import schema
from rocketfleet.spark.source.tasks import columns
from rocketfleet.spark.source.tasks.ranges import QueueRange
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.message.compression import Compression
from rocketfleet.wire.message.stored import encode_stored
from rocketfleet.wire.queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 3)
ALL = QueueRange(QUEUE, 0, 1 << 60)
text = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=20)
names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "XTAGS", "a", "KEYS2", "WAIT"])
messages = st.fixed_dictionaries(
    {
        "body": st.binary(max_size=300),
        "properties": st.dictionaries(names, text, max_size=6),
        "queue_offset": st.integers(0, 1 << 40),
        "born_timestamp": st.integers(0, 1 << 42),
        "store_timestamp": st.integers(0, 1 << 42),
        "reconsume_times": st.integers(0, 100),
        "commit_log_offset": st.integers(0, 1 << 60),
        "sys_flag": st.sampled_from([0, *(one.flag for one in Compression)]),
        "store_host": st.sampled_from(["10.1.2.3:10911", "[::1]:10911"]),
    }
)
SPARK_TYPES = {
    "STRING": StringType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "BINARY": BinaryType(),
    "TIMESTAMP": TimestampType(),
    "MAP<STRING, STRING>": MapType(StringType(), StringType()),
}


def stored(many: list[dict[str, object]]) -> bytes:
    return b"".join(encode_stored("orders", one["body"], **_rest(one)) for one in many)  # type: ignore[arg-type]


def _rest(one: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in one.items() if name != "body"}


def test_the_schema_is_the_one_that_spark_expects() -> None:
    declared = StructType()
    for name, kind in schema.COLUMNS.items():
        declared = declared.add(name, SPARK_TYPES[kind])
    assert to_arrow_schema(declared, timezone="UTC").equals(columns.SCHEMA)


@given(st.lists(messages, min_size=1, max_size=20), st.booleans())
def test_both_ways_give_what_was_stored(many: list[dict[str, object]], properties: bool) -> None:
    data = stored(many)
    batch = columns.record_batch([(ALL, [data])], properties=properties)
    arrays, _ = columns._long_way([(ALL, [data])], QUEUE, properties=properties)
    long = pa.RecordBatch.from_arrays(arrays, schema=columns.SCHEMA)
    assert batch.to_pylist() == long.to_pylist()
    for row, one in zip(batch.to_pylist(), many, strict=True):
        held = one["properties"]
        assert isinstance(held, dict)
        assert row["body"] == one["body"]
        assert row["queueOffset"] == one["queue_offset"]
        assert row["reconsumeTimes"] == one["reconsume_times"]
        assert (row["tags"], row["keys"]) == (held.get("TAGS"), held.get("KEYS"))
        assert row["bornTime"].timestamp() * 1000 == pytest.approx(one["born_timestamp"])
        assert row["msgId"] == held["UNIQ_KEY"] if "UNIQ_KEY" in held else len(row["msgId"]) in {32, 56}
        assert row["properties"] == (list(held.items()) if properties else None)


@given(st.lists(messages, min_size=1, max_size=8))
def test_messages_as_they_nearly_always_are_go_the_short_way(many: list[dict[str, object]]) -> None:
    usual = [{**one, "store_host": "10.1.2.3:10911"} for one in many]
    assert columns._short_way(stored(usual), np.array([0]), QUEUE, properties=False) is not None


@given(st.lists(messages, min_size=1, max_size=4), st.data())
def test_a_damaged_answer_is_an_error_and_nothing_else(many: list[dict[str, object]], data: st.DataObject) -> None:
    whole = stored(many)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    starts = {0}
    for one in many:
        starts.add(max(starts) + len(stored([one])))
    if len(cut) in starts:
        return
    with pytest.raises(WireError):
        columns.record_batch([(ALL, [cut])])


def test_only_the_range_and_the_tags_asked_for_are_kept() -> None:
    # "Aa" and "BB" have one hash code, so a broker asked for one gives both.
    many = [encode_stored("orders", b"x", {"TAGS": tag}, queue_offset=n) for n, tag in enumerate(["Aa", "BB"] * 5)]
    many.append(encode_stored("orders", b"x", queue_offset=10))
    batch = columns.record_batch([(QueueRange(QUEUE, 2, 8), [b"".join(many)])], tags=frozenset({"Aa"}))
    assert batch.column("queueOffset").to_pylist() == [2, 4, 6]


@pytest.mark.parametrize("store_host", ["10.1.2.3:10911", "[::1]:10911"])
def test_an_answer_that_goes_beyond_its_piece_repeats_nothing(store_host: str) -> None:
    def answer(*offsets: int) -> bytes:
        return b"".join(encode_stored("orders", b"x", queue_offset=n, store_host=store_host) for n in offsets)

    pieces = [
        (QueueRange(QUEUE, 0, 4), [answer(0, 1), answer(2, 5, 6)]),
        (QueueRange(QUEUE, 4, 8), [answer(3, 5, 6, 9)]),
        (QueueRange(QUEUE, 8, 9), [answer(9)]),
        (QueueRange(QUEUE, 9, 12), [answer(9, 11)]),
    ]
    assert columns.record_batch(pieces).column("queueOffset").to_pylist() == [0, 1, 2, 5, 6, 9, 11]


def test_properties_that_are_not_utf_8_are_read_all_the_same() -> None:
    data = encode_stored("orders", b"x", {"TAGS": "aXb"}, queue_offset=1).replace(b"aXb", b"a\xffb")
    assert columns.record_batch([(ALL, [data])]).column("tags").to_pylist() == ["a�b"]
