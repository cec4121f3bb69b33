"""Each rule by hand, a manifest that breaks it and the line that is said; then both sides of each rule, compared."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.api.cases import BROKEN, KEPT
from tests.unit.api.cel import holds
from tests.unit.api.groups import changed, good, objects

from rocketfleet.api.checking import problems, read_object
from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.rule import Rule
from rocketfleet.api.rules import CHANGE_RULES, EVERY_RULE, RULES
from rocketfleet.api.rules.consuming import TAGS
from rocketfleet.api.rules.form import has_form
from rocketfleet.consumer.subscription import tags_problem


def seen(raw: dict[str, Any]) -> dict[str, Any]:
    """An object as the API server evaluates it: with the defaults filled in."""
    return ConsumerGroup.model_validate(raw).model_dump(mode="json", by_alias=True, exclude_none=True)


@pytest.mark.parametrize(("name", "changes", "place"), BROKEN)
def test_a_broken_rule_is_said_where_it_is_broken(name: str, changes: dict[str, Any], place: str) -> None:
    rule = next(rule for rule in RULES if rule.name == name)
    raw = changed(good(), changes)
    assert f"{place}: {rule.message}" in problems(ConsumerGroup.model_validate(raw))
    if rule.cel is not None:
        assert not holds(rule, seen(raw))


def test_every_rule_is_broken_in_a_test() -> None:
    assert {name for name, _, _ in BROKEN} == {rule.name for rule in RULES}


@pytest.mark.parametrize("changes", KEPT)
def test_what_makes_sense_is_accepted(changes: dict[str, Any]) -> None:
    raw = changed(good(), changes)
    assert read_object(raw).metadata.name == "orders"
    assert [rule.name for rule in RULES if rule.cel is not None and not holds(rule, seen(raw))] == []


def test_rules_have_names_of_their_own_and_messages_on_one_line() -> None:
    assert len({rule.name for rule in EVERY_RULE}) == len(EVERY_RULE)
    for rule in EVERY_RULE:
        assert "\n" not in rule.message, rule.name
        assert len(rule.message) <= 200, rule.name
        assert not rule.message.endswith("."), rule.name


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(objects)
def test_the_api_server_and_python_mean_the_same(raw: dict[str, Any]) -> None:
    group = ConsumerGroup.model_validate(raw)
    given_defaults = seen(raw)
    for rule in RULES:
        if rule.cel is not None:
            assert holds(rule, given_defaults) == (not list(rule.broken_in(group))), rule.name


@given(st.text("ab*,;| \t\n", max_size=12))
def test_a_manifest_and_the_consumer_refuse_the_same_tags(expression: str) -> None:
    assert has_form(expression, TAGS) == (tags_problem(expression) is None)


NAMES = st.sampled_from([None, "orders", "shop"])


@pytest.mark.parametrize("rule", CHANGE_RULES, ids=lambda rule: rule.name)
@given(NAMES, NAMES)
def test_changes_are_judged_alike(rule: Any, before: str | None, after: str | None) -> None:
    old, new = (changed(good(), {"spec.groupName": name}) for name in (before, after))
    broken = list(rule.broken_by(ConsumerGroup.model_validate(new), ConsumerGroup.model_validate(old)))
    assert holds(rule, seen(new), seen(old)) == (not broken)
    assert bool(broken) == ((before or "orders") != (after or "orders"))


def test_a_changed_group_name_is_refused() -> None:
    old = read_object(good())
    assert problems(read_object(changed(good(), {"spec.groupName": "orders"})), old) == []
    (line,) = problems(read_object(changed(good(), {"spec.groupName": "shop"})), old)
    assert line.startswith("spec.groupName: the group's name never changes")


def test_a_rule_at_a_place_that_is_not_there_is_found_out() -> None:
    rule = Rule("slip", "spec.consume.thread", "", "true", lambda _: True)
    with pytest.raises(LookupError, match="thread"):
        list(rule.broken_in(read_object(good())))
