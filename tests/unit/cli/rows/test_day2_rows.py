"""The tables of day-2 commands: what is not known is never shown as 0."""

from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.cli.rows.lag_rows import LagRow, lag_rows, short_names, span_text, total_of, total_text
from rocketfleet.cli.rows.status_rows import condition_rows, facts, group_row, is_stale, pod_rows, pod_state, state_of
from rocketfleet.lag.collecting.assembly import assemble
from rocketfleet.lag.collecting.broker_reading import BrokerReading
from rocketfleet.lag.collecting.layout import GroupLayout
from rocketfleet.lag.figures import QueueLag
from rocketfleet.lag.target import Target
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from rocketfleet.client.client import Client

NOW = 1_800_000_000.0
Q = MessageQueue("orders", "a", 0)


def one(
    committed: dict[MessageQueue, int | None],
    ends: dict[MessageQueue, tuple[int, int]],
    *,
    beginning: bool = False,
    age: float | None = None,
) -> LagRow:
    """The row of a queue of which a broker said this."""
    where = ConsumeFromWhere.FIRST_OFFSET if beginning else ConsumeFromWhere.TIMESTAMP
    pair = "orders", "g"
    reading = BrokerReading(
        NOW,
        {pair: {queue.queue_id: offset for queue, offset in committed.items()}},
        {"orders": {queue.queue_id: limits for queue, limits in ends.items()}},
        {} if age is None else {pair: {Q.queue_id: age}},
    )
    target = Target(cast("Client", None), "g", ("orders",), where)
    (row,) = lag_rows(assemble(target, GroupLayout((Q,)), {"a": reading}, None, {}, NOW).queues, {})
    return row


def test_what_lies_between_offset_and_end_and_is_still_there() -> None:
    assert one({Q: 30}, {Q: (10, 100)})["lag"] == 70
    assert one({Q: 5}, {Q: (10, 100)})["lag"] == 90
    assert one({Q: 500}, {Q: (10, 100)})["lag"] == 0


def test_unknown_is_not_zero() -> None:
    for row in (one({}, {Q: (0, 0)}), one({Q: 5}, {}), one({}, {}), one({Q: None}, {Q: (0, 0)})):
        assert row["lag"] is None
        assert row["age_seconds"] is None
    assert one({}, {Q: (0, 7)}, beginning=True)["lag"] is None  # nobody answered: it may have an offset


def test_a_group_that_will_begin_at_the_beginning_lags_by_everything() -> None:
    row = one({Q: None}, {Q: (10, 100)}, beginning=True)
    assert (row["committed"], row["lag"]) == (None, 90)


@given(st.none() | st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_lag_is_never_negative_and_never_more_than_there_is(
    committed: int | None, a: int, b: int, beginning: bool
) -> None:
    row = one({Q: committed}, {Q: (min(a, b), max(a, b))}, beginning=beginning)
    assert (row["lag"] is None) == (committed is None and not beginning)
    assert 0 <= (row["lag"] or 0) <= abs(a - b)


def test_ages() -> None:
    assert one({Q: 30}, {Q: (10, 100)}, age=4.50049)["age_seconds"] == 4.5
    assert one({Q: 100}, {Q: (10, 100)}, age=77.0)["age_seconds"] == 0.0
    assert one({Q: 30}, {Q: (10, 100)})["age_seconds"] is None


def test_of_a_broadcasting_group_each_member_has_its_rows() -> None:
    rows = lag_rows(
        [QueueLag(Q, 0, 9, at, 9 - at, 0.0, member, NOW) for member, at in (("b", 2), ("a", 9))], {Q: ["x"]}
    )
    assert [(row["owner"], row["committed"], row["lag"]) for row in rows] == [(["a"], 9, 0), (["b"], 2, 7)]


def test_a_sum_with_something_unknown_is_unknown() -> None:
    known, unknown = one({Q: 30}, {Q: (10, 100)}), one({}, {Q: (10, 100)})
    assert total_of([known, known])["lag"] == 140
    assert total_of([known, unknown])["lag"] is None
    assert total_text(total_of([known, unknown])) == "unknown in 1 of 2 queues, at least 70"
    assert total_text(total_of([])) == "no queues"
    assert total_text(total_of([one({Q: 30}, {Q: (0, 40)}, age=200.0)])) == "10, the oldest 3m old"
    missing = total_of([known], complete=False)  # a topic that is not there has queues that nobody knows
    assert (missing["lag"], total_text(missing)) == (None, "unknown, at least 70")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7260, "2h1m"), (172_800, "2d"), (183_600, "2d3h")],
)
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


def test_names_are_short_where_they_stay_distinct() -> None:
    uid, other = "6f1c2d3e-0000-4000-8000-123456789abc", "6f1c2d3e-0000-4000-8000-123456789abd"
    assert short_names([f"orders-0@{uid}", f"orders-1@{uid}#1", "host@17"]) == {
        f"orders-0@{uid}": "orders-0",
        f"orders-1@{uid}#1": "orders-1#1",
        "host@17": "host@17",
    }
    both = [f"orders-0@{uid}", f"orders-0@{other}"]
    assert short_names(both) == {name: name for name in both}


# -- objects ----------------------------------------------------------------------------------------------------------


def group(**parts: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "orders", "namespace": "shop", "generation": 2, **parts.pop("metadata", {})},
        "spec": {"subscriptions": [{"topic": "orders"}], **parts.pop("spec", {})},
        "status": {"observedGeneration": 2, **parts.pop("status", {})},
    }


def condition(kind: str, status: str, reason: str = "Because") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("found", "state"),
    [
        ({"metadata": {"name": "x"}}, "Unknown"),
        (group(status={"conditions": [condition("Ready", "True")]}), "Ready"),
        (group(status={"conditions": [condition("Ready", "True")]}, spec={"suspend": True}), "Suspended"),
        (group(status={"conditions": [condition("Ready", "False", "Scaling")]}), "Scaling"),
        (group(status={"state": "Failing", "conditions": [condition("Ready", "True")]}), "Failing"),
        (
            group(status={"conditions": [condition("Ready", "False"), condition("BrokerReachable", "False")]}),
            "BrokerUnreachable",
        ),
        (
            group(status={"replicas": 1, "conditions": [condition("Ready", "False")]}, spec={"suspend": True}),
            "Suspending",
        ),
        (
            group(metadata={"deletionTimestamp": "x"}, status={"conditions": [condition("Ready", "True")]}),
            "Deleting",
        ),
    ],
)
def test_the_state_in_a_word(found: dict[str, Any], state: str) -> None:
    assert state_of(found) == state


def test_an_object_that_nobody_looked_at_shows_nothing_as_known() -> None:
    row = group_row({"metadata": {"name": "orders", "generation": 1}, "spec": {}}, NOW)
    assert (row["ready"], row["queues"], row["lag"], row["lag_seconds"]) == (None, None, None, None)
    assert is_stale({"metadata": {"generation": 1}})
    assert not is_stale(group())
    assert facts({"metadata": {"name": "orders"}, "spec": {}}, NOW)["lag"] is None


def test_a_group_in_full() -> None:
    found = group(
        status={
            "readyReplicas": 2,
            "desiredReplicas": 3,
            "queues": {"total": 8, "owned": 7, "unowned": 1, "shared": 0},
            "lag": {"messages": 0, "seconds": 0, "retry": 4, "delayed": 16, "triedPerMinute": 9, "failedPerMinute": 3},
            "lastRebalance": {"reason": "scale", "moved": None, "seconds": 1.5, "completedAt": "garbage"},
            "lastDrain": {"pod": "orders-2", "verified": False, "seconds": 1, "queues": 2, "completedAt": None},
            "conditions": [condition("Ready", "False", "Scaling")],
        }
    )
    row = group_row(found, NOW)
    assert (row["ready"], row["queues"], row["lag"], row["state"]) == ("2/3", "7/8", 0, "Scaling")
    told = facts(found, NOW)
    waiting = "4 due for retry, 16 waiting for their next try"
    assert told["lag"] == f"0 messages, the oldest 0s old, {waiting}, 3 of 9 attempts failed in a minute"
    assert told["queues"] == "7 of 8 with one owner, 1 with none, 0 with several"
    assert told["last rebalance"] == "at an unknown time, in 1.5 s, an unknown number of queues moved (scale)"
    assert "NOT verified" in str(told["last drain"])
    (line,) = condition_rows(found, NOW)
    assert (line["condition"], line["status"], line["reason"]) == ("Ready", "False", "Scaling")


def pod(ordinal: int, **parts: Any) -> dict[str, Any]:
    name = f"orders-{ordinal}"
    labels = {"rocketfleet.io/ordinal": str(ordinal)}
    return {
        "metadata": {"name": name, "labels": labels, **parts.pop("metadata", {})},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", **parts.pop("status", {})},
    }


def test_pods_come_by_ordinal_and_guests_last() -> None:
    members = [
        {"clientId": "java@1", "state": "Guest", "queues": 2},
        {"pod": "orders-2", "clientId": "a#0", "queues": 1, "state": "Running", "lag": 4},
        {"pod": "orders-2", "clientId": "a#1", "queues": 2, "state": "Running"},
        {"pod": "orders-10", "clientId": "b", "queues": 3, "state": "Running", "lag": 5},
    ]
    rows = pod_rows(group(status={"members": members}), [pod(10), pod(2), pod(0)], NOW)
    assert [(row["pod"], row["queues"], row["lag"]) for row in rows] == [
        ("orders-0", None, None),
        ("orders-2", 3, None),  # of one process the lag is not known
        ("orders-10", 3, 5),
        (None, 2, None),
    ]
    assert [row["state"] for row in rows] == ["Running", "Running", "Running", "Guest"]
    assert rows[1]["client_id"] == "a#0, a#1"


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (pod(0), "Running"),
        (pod(0, metadata={"annotations": {"rocketfleet.io/drain": '{"reason": "requested"}'}}), "Draining (requested)"),
        (pod(0, metadata={"annotations": {"rocketfleet.io/drain": "not JSON"}}), "Draining"),
        (pod(0, metadata={"deletionTimestamp": "x"}), "Terminating"),
        (
            pod(0, status={"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
            "ImagePullBackOff",
        ),
    ],
)
def test_the_state_of_a_pod(found: dict[str, Any], state: str) -> None:
    assert pod_state(found) == state
