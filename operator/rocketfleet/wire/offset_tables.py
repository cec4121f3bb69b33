"""Reading the two tables of offsets that whoever watches a cluster reads all day, many times as fast.

`fastjson` reads them too, but they have objects and bare numbers as keys, so they take its slow path: at thousands of
topics that is most of the work. Brokers write each in one shape, which a regular expression recognises; a table that
is not wholly in that shape is left to the general reader.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocketfleet.wire.bodies import ConsumerOffsets, TopicStatsTable

if TYPE_CHECKING:
    from collections.abc import Container

_END_OF_QUEUE = re.compile(
    rb'\{"brokerName":"[^"\\]*","queueId":(\d{1,9}),"topic":"[^"\\]*"\}:'
    rb'\{"lastUpdateTimestamp":-?\d{1,19},"maxOffset":(-?\d{1,18}),"minOffset":(-?\d{1,18})\}'
)
_TABLE = b'"offsetTable":{'
_GROUP_IN_TOPIC = re.compile(rb'"([^"\\]*)":\{((?:\d{1,9}:-?\d{1,18},?)*)\}')


def queue_ends(body: bytes | memoryview) -> dict[int, tuple[int, int]]:
    """The answer to GET_TOPIC_STATS_INFO at one broker: queue id → smallest and largest offset; else a BodyError.

    A queue without messages has offsets of -1 in some stores; that is 0.
    """
    data = bytes(body)
    found = _END_OF_QUEUE.findall(data)
    if not found or len(found) != data.count(b'"maxOffset"'):
        table = TopicStatsTable.decode(data).offset_table
        return {queue.queue_id: (max(ends.min_offset, 0), max(ends.max_offset, 0)) for queue, ends in table.items()}
    return {int(number): (max(int(least), 0), max(int(most), 0)) for number, most, least in found}


def group_offsets(body: bytes | memoryview, wanted: Container[bytes]) -> tuple[dict[str, dict[int, int]], int]:
    """The answer to GET_ALL_CONSUMER_OFFSET: for those wanted of `topic@group`, queue id → offset; and how many such
    keys the whole table has. BodyError if it is none.
    """
    data = bytes(body)
    start = data.find(_TABLE)
    end = data.find(b"}}", start)
    table = data[start + len(_TABLE) : end + 1]
    found = _GROUP_IN_TOPIC.findall(table)
    # Two quotes each, and nothing escaped: then no name hides the end of the table, or of anything in it.
    if start < 0 or not found or b"\\" in table or table.count(b'"') != 2 * len(found):
        whole = ConsumerOffsets.decode(data).offset_table
        return {key: offsets for key, offsets in whole.items() if key.encode() in wanted}, len(whole)
    result = {}
    for key, pairs in found:
        if key in wanted:
            numbers = (pair.split(b":") for pair in pairs.rstrip(b",").split(b",") if pair)
            result[key.decode()] = {int(number): int(offset) for number, offset in numbers}
    return result, len(found)
