"""Single values: from JSON and from text, and the sentence when they are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.configuration.setting_table import BY_KEY, SETTINGS, Kind, Setting
from rocketfleet.worker.configuration.setting_values import (
    from_json,
    items_from_text,
    moment,
    queue_from_text,
    subscription_from_text,
)


@pytest.mark.parametrize(
    ("text", "topic", "expression", "kind"),
    [
        ("orders", "orders", "*", ExpressionType.TAG),
        ("orders=", "orders", "*", ExpressionType.TAG),
        ("orders=paid||open", "orders", "paid||open", ExpressionType.TAG),
        (" orders = paid ", "orders", "paid", ExpressionType.TAG),
        ("orders=sql:price > 5 AND kind = 'a=b'", "orders", "price > 5 AND kind = 'a=b'", ExpressionType.SQL92),
    ],
)
def test_a_topic_with_its_expression(text: str, topic: str, expression: str, kind: ExpressionType) -> None:
    assert subscription_from_text(text) == Subscription(topic, expression, kind)


@pytest.mark.parametrize("text", ["", "or ders", "or.ders=a", "=a", " = ", "orders=sql:", "orders=sql: "])
def test_what_is_no_subscription_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        subscription_from_text(text)


@pytest.mark.parametrize("text", ["orders=a,b", "orders=a, b", "orders=a b", "orders=a|b", "orders=a||b;c"])
def test_tags_that_no_message_has_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"join tags with \|\|, as created \|\| paid"):
        subscription_from_text(text)
    assert subscription_from_text("orders=sql:a IN ('b', 'c d')").topic == "orders"


def test_a_queue_may_have_colons_in_its_brokers_name() -> None:
    assert queue_from_text("orders:broker-a:3") == MessageQueue("orders", "broker-a", 3)
    assert queue_from_text("orders:room:broker-a:3") == MessageQueue("orders", "room:broker-a", 3)


@pytest.mark.parametrize(
    "text", ["", "orders", "orders:3", "orders::3", ":b:3", "orders:b:", "orders:b:-1", "orders:b:²"]
)
def test_what_is_no_queue_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="topic:broker:id"):
        queue_from_text(text)


@given(st.text())
def test_any_text_is_a_subscription_or_a_sentence(text: str) -> None:
    try:
        assert subscription_from_text(text).topic
    except SettingsError as error:
        assert str(error)  # noqa: PT017 - either is right


def test_lists_in_the_environment_are_separated_by_semicolons_or_lines() -> None:
    assert items_from_text("a=x||y; b ;;\nc=sql:d IN ('e','f')\n") == ["a=x||y", "b", "c=sql:d IN ('e','f')"]


def test_a_moment_needs_its_zone() -> None:
    assert moment("1970-01-01T00:01:00Z") == 60.0
    assert moment("1970-01-01T01:00:00.5+01:00") == 0.5
    for text in ("1970-01-01T00:01:00", "yesterday", "", "60"):
        with pytest.raises(SettingsError, match="zone"):
            moment(text)


WRONG = {
    Kind.TEXT: (5, "", [], True),
    Kind.NUMBER: ("5", 1.5, True, []),
    Kind.SECONDS: ("5", True, {}),
    Kind.SWITCH: (1, "yes"),
    Kind.CHOICE: ("Other", 5, "clustering"),
    Kind.TEXTS: ("a", [1], [""]),
    Kind.SUBSCRIPTIONS: (
        "t", [5], [{}], [{"topic": ""}], [{"topic": "t", "tag": "a"}], [{"topic": "t", "type": "SQL"}],
        [{"topic": "t", "expression": 5}],
    ),
    Kind.QUEUES: ([{"topic": "t"}], [{"topic": "t", "broker": "b", "queueId": "1"}], [["t", "b", 1]]),
    Kind.STRATEGY: (5, [], "Other"),
}  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_a_wrong_value_in_a_file_is_a_sentence_that_names_the_key(setting: Setting) -> None:
    for value in WRONG[setting.kind]:
        with pytest.raises(SettingsError) as raised:
            from_json(setting, value)
        assert setting.key in str(raised.value)
        assert "\n" not in str(raised.value)


def test_subscriptions_of_a_file() -> None:
    value = [{"topic": "a"}, {"topic": "b", "expression": "x || y", "type": "Tag"}, {"topic": "c", "expression": None},
             {"topic": "d", "expression": "e > 5", "type": "SQL92"}]  # fmt: skip
    assert from_json(BY_KEY["subscriptions"], value) == [
        Subscription("a"),
        Subscription("b", "x || y"),
        Subscription("c"),
        Subscription("d", "e > 5", ExpressionType.SQL92),
    ]


def test_a_wrong_value_is_shown_but_not_at_length() -> None:
    with pytest.raises(SettingsError) as raised:
        from_json(BY_KEY["consume.threads"], "x" * 10_000)
    assert len(str(raised.value)) < 200


def test_keys_options_and_variables_are_all_different() -> None:
    assert len({setting.key for setting in SETTINGS}) == len(SETTINGS)
    assert len({setting.option for setting in SETTINGS}) == len(SETTINGS)
    assert len({setting.parameter for setting in SETTINGS}) == len(SETTINGS)
