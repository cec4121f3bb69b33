"""The quick readers say what the general one says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.wire.bodies import TopicOffset, TopicStatsTable
from rocketfleet.wire.errors import BodyError
from rocketfleet.wire.offset_tables import group_offsets, queue_ends
from rocketfleet.wire.queue import MessageQueue

names = st.text("abcXYZ09_-%|", min_size=1, max_size=12) | st.text(min_size=1, max_size=6)
numbers = st.integers(-1, 1 << 50)


def written(queue: MessageQueue, ends: TopicOffset) -> str:
    """As a broker writes it: fields by name."""
    return (
        f'{{"brokerName":{json.dumps(queue.broker)},"queueId":{queue.queue_id},"topic":{json.dumps(queue.topic)}}}:'
        f'{{"lastUpdateTimestamp":{ends.last_update_timestamp},"maxOffset":{ends.max_offset},'
        f'"minOffset":{ends.min_offset}}}'
    )


@given(names, names, st.dictionaries(st.integers(0, 300), st.tuples(numbers, numbers), max_size=5), st.booleans())
def test_ends_of_queues(topic: str, broker: str, table: dict[int, tuple[int, int]], as_broker: bool) -> None:
    offsets = {
        MessageQueue(topic, broker, number): TopicOffset(least, most, 7) for number, (least, most) in table.items()
    }
    body = TopicStatsTable(offsets).to_json()
    if as_broker:
        rows = ",".join(written(queue, ends) for queue, ends in offsets.items())
        body = f'{{"offsetTable":{{{rows}}},"topicPutTps":0.0}}'
    expected = {number: (max(least, 0), max(most, 0)) for number, (least, most) in table.items()}
    assert queue_ends(body.encode()) == expected


@given(
    st.dictionaries(
        st.tuples(names, names), st.dictionaries(st.integers(0, 99), st.integers(-1, 1 << 40), max_size=4), max_size=5
    ),
    st.booleans(),
    st.data(),
)
def test_offsets_of_groups(table: dict[tuple[str, str], dict[int, int]], quoted: bool, data: st.DataObject) -> None:
    mark = '"' if quoted else ""
    rows = {
        f"{topic}@{group}": "{" + ",".join(f"{mark}{number}{mark}:{at}" for number, at in offsets.items()) + "}"
        for (topic, group), offsets in table.items()
    }
    content = ",".join(f"{json.dumps(key, ensure_ascii=False)}:{offsets}" for key, offsets in rows.items())
    body = f'{{"dataVersion":{{"counter":3}},"offsetTable":{{{content}}},"pullOffsetTable":{{"t@g":{{0:99}}}}}}'
    keys = {f"{topic}@{group}": offsets for (topic, group), offsets in table.items()}
    wanted = set(data.draw(st.lists(st.sampled_from(sorted(keys) or ["t@g"]), unique=True)))
    found, size = group_offsets(body.encode(), {key.encode() for key in wanted})
    assert found == {key: offsets for key, offsets in keys.items() if key in wanted}
    assert size == len(keys)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"offsetTable":{{', b'{"offsetTable":5}'])
def test_what_is_no_table_is_an_error(body: bytes) -> None:
    with pytest.raises(BodyError):
        queue_ends(body)
    with pytest.raises(BodyError):
        group_offsets(body, {b"t@g"})
