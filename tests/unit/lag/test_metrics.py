"""What Prometheus reads, as prometheus-client's own parser reads it."""

import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.lag.making import moment, row

from rocketfleet.lag.figures import GroupLag
from rocketfleet.lag.judging.rules import GroupVerdict, LagFinding
from rocketfleet.lag.metrics import LONGEST, OF_GROUP, OF_QUEUE, LagMetrics, bounded
from rocketfleet.lag.target import Target
from rocketfleet.wire.enums import ConsumeFromWhere


class Groups:
    """What the metrics want of a monitor."""

    def __init__(self, *groups: tuple[Target, GroupLag, LagFinding]) -> None:
        self.found = list(groups)
        self.sweep_seconds: float | None = 1.5
        self.swept_at: float | None = 1000.0

    def __len__(self) -> int:
        return len(self.found)

    def groups(self) -> Iterator[tuple[Hashable, Target, GroupLag, GroupVerdict]]:
        for place, (target, lag, state) in enumerate(self.found):
            yield place, target, lag, GroupVerdict(state, "so it is")


def target(name: str = "orders", **more: Any) -> Target:
    fields = {"cluster": "main", "namespace": "shop", "name": name, **more}
    return Target(None, fields.pop("group", name), ("orders",), ConsumeFromWhere.LAST_OFFSET, **fields)  # type: ignore[arg-type]


def scraped(groups: Groups, *, per_queue: bool = True) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    text = LagMetrics(groups, per_queue=per_queue).render().decode()  # type: ignore[arg-type]
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type == ("counter" if family.name.endswith("given_up_messages") else "gauge")
        suffix = "_total" if family.type == "counter" else ""
        series = found.setdefault(family.name.removeprefix("rocketfleet_") + suffix, {})
        for sample in family.samples:
            key = tuple(sorted(sample.labels.items()))
            assert key not in series, f"{family.name} has two samples with the same labels"
            series[key] = sample.value
    return found


OF_ORDERS = (("cluster", "main"), ("group", "orders"), ("name", "orders"), ("namespace", "shop"))


def test_a_group_and_its_queues() -> None:
    lag = replace(
        moment([(2, 9), (4, 4)], 1000.0, owners=["a", None]),
        consume_rate=2.5, produce_rate=1.0, drain_seconds=math.inf, retry=3, dlq=0,
    )  # fmt: skip
    found = scraped(Groups((target(), lag, LagFinding.STALLED)))
    assert found.keys() == {
        *OF_GROUP, *OF_QUEUE, "queue_owner", "group_state", "lag_groups", "lag_sweep_seconds",
        "lag_sweep_timestamp_seconds",
    }  # fmt: skip
    assert found["group_lag_messages"] == {OF_ORDERS: 7}
    assert found["group_drain_seconds"] == {OF_ORDERS: math.inf}
    assert (found["group_retry_messages"], found["group_dead_letters"]) == ({OF_ORDERS: 3}, {OF_ORDERS: 0})
    states = {dict(labels)["state"]: value for labels, value in found["group_state"].items()}
    assert states == {state.value: float(state is LagFinding.STALLED) for state in LagFinding}
    by_queue = {dict(labels)["queue"]: value for labels, value in found["queue_lag_messages"].items()}
    assert by_queue == {"0": 7, "1": 0}
    (owner,) = found["queue_owner"]
    assert dict(owner) == {
        "namespace": "shop", "name": "orders", "topic": "orders", "broker": "broker-a", "queue": "0", "owner": "a"
    }  # fmt: skip


def test_what_is_not_known_has_no_sample() -> None:
    lag = moment([(None, 9)], 1000.0, members=None)
    found = scraped(Groups((target(), lag, LagFinding.UNKNOWN)))
    for name in ("group_lag_messages", "group_lag_seconds", "group_members", "group_retry_messages"):
        assert found[name] == {}
    assert found["queue_lag_messages"] == found["queue_consumer_offset"] == {}
    assert list(found["queue_max_offset"].values()) == [9]
    assert found["group_unknown_queues"] == {OF_ORDERS: 1}


def test_a_forgotten_group_leaves_nothing() -> None:
    groups = Groups(
        (target("gone"), moment([(2, 9)], 1000.0), LagFinding.OK), (target(), moment([(2, 9)], 1000.0), LagFinding.OK)
    )
    assert "gone" in LagMetrics(groups).render().decode()  # type: ignore[arg-type]
    del groups.found[0]
    assert "gone" not in LagMetrics(groups).render().decode()  # type: ignore[arg-type]


def test_queues_can_be_left_out() -> None:
    found = scraped(Groups((target(), moment([(2, 9)], 1000.0), LagFinding.OK)), per_queue=False)
    assert not [name for name in found if name.startswith("queue_")]
    assert found["group_lag_messages"] == {OF_ORDERS: 7}


def test_a_broadcasting_group_has_one_series_a_queue() -> None:
    rows = tuple(
        row(0, offset, 10, 1000.0, owner=name, seconds=age) for name, offset, age in [("a", 4, 2.0), ("b", 9, 5.0)]
    )
    lag = replace(moment([], 1000.0), queues=rows)
    found = scraped(Groups((target(broadcast=True), lag, LagFinding.OK)))
    assert list(found["queue_lag_messages"].values()) == [7]
    assert list(found["queue_lag_seconds"].values()) == [5.0]
    assert found["queue_consumer_offset"] == {}
    assert {dict(labels)["owner"] for labels in found["queue_owner"]} == {"a", "b"}


def test_before_the_first_look() -> None:
    groups = Groups()
    groups.sweep_seconds = groups.swept_at = None
    found = scraped(groups)
    assert found["lag_groups"] == {(): 0}
    assert found["lag_sweep_seconds"] == {}


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_name_is_read_back_or_cut_in_a_way_that_tells_it_apart(one: str, other: str) -> None:
    assert len(bounded(one)) <= LONGEST
    assert (bounded(one) == bounded(other)) == (one == other)
    if any(0xD800 <= ord(letter) < 0xE000 for letter in one) or "\r" in one or one.splitlines() != [one]:
        return  # prometheus-client's parser splits at every kind of line end
    (labels,) = scraped(Groups((target(group=one), moment([(2, 9)], 1000.0), LagFinding.OK)))["group_lag_messages"]
    assert dict(labels)["group"] == bounded(one)
