"""Subscriptions: what the broker is told, and what is sorted out again on arrival."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.consumer.messages import received

from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.message import tag_hash


def test_everything_is_wanted_and_costs_nothing() -> None:
    for expression in ("*", "", " * "):
        subscription = Subscription("t", expression)
        assert subscription.wanted is None
        assert subscription.data.sub_string == "*"


def test_tags_that_share_a_hash_are_told_apart() -> None:
    assert tag_hash("AaAa") == tag_hash("BBBB"), "else this test says nothing"
    wanted = Subscription("t", "AaAa").wanted
    assert wanted is not None
    messages = [received(0, tags="AaAa"), received(1, tags="BBBB"), received(2), received(3, tags="AaBB")]
    assert [message.queue_offset for message in wanted(messages)] == [0]


def test_several_tags() -> None:
    subscription = Subscription("t", " a ||b || ")
    assert subscription.data.tags_set == {"a", "b"}
    assert subscription.data.code_set == {tag_hash("a"), tag_hash("b")}
    wanted = subscription.wanted
    assert wanted is not None
    messages = [received(n, tags=tag) for n, tag in enumerate("abcab")]
    assert [message.queue_offset for message in wanted(messages)] == [0, 1, 3, 4]


def test_sql_is_the_brokers_business() -> None:
    subscription = Subscription("t", "a > 5", ExpressionType.SQL92)
    assert subscription.wanted is None
    assert subscription.data.sub_string == "a > 5"
    assert subscription.data.tags_set == frozenset()


def test_the_version_stays_what_it_was() -> None:
    subscription = Subscription("t", "a", version=7)
    assert subscription.data.sub_version == subscription.data.sub_version == 7
    assert Subscription("t").version > 1_600_000_000_000


def test_the_version_does_not_make_two_subscriptions_differ() -> None:
    assert Subscription("t", "a", version=1) == Subscription("t", "a", version=2)


@pytest.mark.parametrize(
    ("topic", "expression", "kind", "words"),
    [
        ("", "*", ExpressionType.TAG, "needs a topic"),
        ("t", "||", ExpressionType.TAG, "no tag"),
        ("t", "created, paid", ExpressionType.TAG, "has a comma in it.*created \\|\\| paid"),
        ("t", "created;paid", ExpressionType.TAG, "has a semicolon in it"),
        ("t", "created | paid", ExpressionType.TAG, r"has a single \| in it"),
        ("t", "a || created paid", ExpressionType.TAG, "the tag 'created paid' has a blank in it"),
        ("t", "  ", ExpressionType.SQL92, "needs an SQL92 expression"),
    ],
)
def test_a_mistake_is_a_sentence(topic: str, expression: str, kind: ExpressionType, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Subscription(topic, expression, kind)


@given(st.lists(st.text("abAB", min_size=1, max_size=4), min_size=1, max_size=5), st.text("abAB", max_size=4))
def test_wanted_is_membership(tags: list[str], tag: str) -> None:
    wanted = Subscription("t", " || ".join(tags)).wanted
    assert wanted is not None
    assert bool(wanted([received(0, tags=tag)])) == (tag in tags)


def test_code_that_is_moved_over_may_keep_an_odd_tag() -> None:
    assert Subscription("t", "created, paid", any_tag=True).data.tags_set == {"created, paid"}
