"""The drain's margins against each other: whoever waits has to wait longer than the one it waits for may take."""

from tests.unit.control.budget_table import table, written
from tests.unit.design import DESIGN

from rocketfleet.control.budget import Beyond, Margin

M = {margin.name: margin.seconds for margin in Margin}


def test_no_value_changes_unnoticed() -> None:
    assert M == {
        "FINAL_COMMIT": 5,
        "UNLOCK": 5,
        "CONSUMER_NET": 15,
        "QUERY_STOP": 10,
        "QUERY_COMMIT": 10,
        "CONTROL_CALL": 30,
        "OPERATOR_CALL": 40,
        "ANSWER": 5,
        "EXIT": 10,
        "PLANNER": 15,
        "DELETION": 60,
        "POD_GRACE": 10,
        "SPARK_GRACE": 20,
        "WITHOUT_LIMIT": 86_400,
    }


def test_the_consumer_catches_only_what_does_not_end_by_itself() -> None:
    assert M["CONSUMER_NET"] > M["FINAL_COMMIT"] + M["UNLOCK"]


def test_a_worker_answers_before_whoever_called_gives_up() -> None:
    assert M["CONTROL_CALL"] > M["CONSUMER_NET"]
    assert M["CONTROL_CALL"] > M["QUERY_STOP"] + M["QUERY_COMMIT"]
    assert M["OPERATOR_CALL"] > M["CONTROL_CALL"] + M["ANSWER"]


def test_the_planner_gives_up_neither_before_the_consumer_nor_after_the_deletion() -> None:
    assert M["PLANNER"] >= M["CONSUMER_NET"]
    assert M["PLANNER"] + M["DELETION"] > M["OPERATOR_CALL"]


def test_a_pod_that_anybody_deletes_has_the_time_to_commit() -> None:
    assert M["POD_GRACE"] >= M["FINAL_COMMIT"] + M["UNLOCK"]
    assert M["POD_GRACE"] + M["SPARK_GRACE"] >= M["QUERY_STOP"] + M["QUERY_COMMIT"] + M["ANSWER"]


def test_without_a_limit_is_longer_than_any_drain_with_one() -> None:
    longest = 3600.0  # the most that the manifest allows for handlers
    with_parent_gone = 2 * Margin.ANSWER.after(longest) + M["EXIT"]
    operator = longest + M["PLANNER"] + M["DELETION"]
    assert M["WITHOUT_LIMIT"] > max(with_parent_gone, operator)


def test_a_margin_is_added_to_what_handlers_get() -> None:
    assert Margin.CONSUMER_NET.after(30.0) == 45.0
    assert Margin.CONTROL_CALL.after(float("inf")) == float("inf")


def test_the_design_shows_the_table_as_it_is() -> None:
    document = DESIGN.read_text()
    assert document == written(document), "run `python -m tests.unit.control.budget_table`"


def test_every_margin_says_what_it_is_for() -> None:
    assert all(margin.why in table() and margin.seconds > 0 for margin in Margin)
    assert {margin.beyond for margin in Margin} == set(Beyond)
