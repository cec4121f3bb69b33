"""Where a queue starts that has no offset: the table, row by row."""

import pytest

from rocketfleet.consumer.offset_storage.start_offset import Start, start_without_offset
from rocketfleet.wire.enums import ConsumeFromWhere

WHERE = ConsumeFromWhere


@pytest.mark.parametrize(
    ("where", "start"),
    [
        (WHERE.LAST_OFFSET, Start.END),
        (WHERE.FIRST_OFFSET, Start.BEGINNING),
        (WHERE.TIMESTAMP, Start.BY_TIME),
    ],
)
def test_an_ordinary_topic(where: ConsumeFromWhere, start: Start) -> None:
    assert start_without_offset(where, "orders") is start


@pytest.mark.parametrize("where", list(ConsumeFromWhere))
def test_nothing_in_a_retry_topic_is_ever_skipped(where: ConsumeFromWhere) -> None:
    assert start_without_offset(where, "%RETRY%group") is Start.BEGINNING
