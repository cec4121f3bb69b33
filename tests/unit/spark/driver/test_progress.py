"""Progress reports: what is read from them, and whose offsets they are."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.control.messages import QueryProgress
from rocketfleet.spark.driver.progress import further, progress_of
from rocketfleet.wire.queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


def source(topic: str = "orders", offset: int = 7, *, as_text: bool = True, **facts: Any) -> dict[str, Any]:
    end: Any = {"offsets": {topic: {"broker-a": {"0": offset}}}, "lost": 2}
    return {
        "endOffset": json.dumps(end) if as_text else end,
        "numInputRows": 5,
        "processedRowsPerSecond": 12.34,
        **facts,
    }


def report(*sources: dict[str, Any], **facts: Any) -> str:
    content = {
        "batchId": 3, "timestamp": "2026-01-31T08:00:00.500Z", "durationMs": {"triggerExecution": 1700},
        "sources": list(sources), **facts,
    }  # fmt: skip
    return json.dumps(content)


def test_a_batch_as_the_status_shows_it() -> None:
    for as_text in (True, False):
        found = progress_of(report(source(as_text=as_text)), ["orders"])
        assert found is not None
        assert found.done == {QUEUE: 7}
        assert found.lost == 2
        assert found.report() == QueryProgress(3, 5, 12.3, 1.7, "2026-01-31T08:00:02Z")


def test_another_source_of_the_query_is_not_ours() -> None:
    rates = {"endOffset": "17", "numInputRows": 9}
    files = {"endOffset": {"logOffset": 4}}
    other = source("payments", 99)
    found = progress_of(report(rates, files, other, source()), ["orders", "refunds"])
    assert found is not None
    assert found.done == {QUEUE: 7}
    assert progress_of(report(rates, files, other), ["orders"]) is None


def test_what_a_report_leaves_out_is_not_made_up() -> None:
    bare = source(numInputRows=None, processedRowsPerSecond=None)
    found = progress_of(report(bare, durationMs=None, timestamp=None), ["orders"])
    assert found is not None
    assert (found.messages, found.per_second, found.seconds, found.completed_at) == (0, 0.0, 0.0, None)


OFFSETS = st.dictionaries(st.builds(MessageQueue, st.just("t"), st.just("b"), st.integers(0, 3)), st.integers(0, 9))


@given(OFFSETS, OFFSETS)
def test_two_witnesses_never_take_each_other_back(one: dict[MessageQueue, int], other: dict[MessageQueue, int]) -> None:
    both = further(one, other)
    assert both == further(other, one)
    assert both.keys() == one.keys() | other.keys()
    assert all(both[queue] >= offset for told in (one, other) for queue, offset in told.items())
    assert all(both[queue] in (one.get(queue), other.get(queue)) for queue in both)
