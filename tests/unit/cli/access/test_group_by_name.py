"""A group without an object: put together from what brokers know."""

from rocketfleet.cli.access.group_by_name import described
from rocketfleet.cli.access.manifest_file import read_group
from rocketfleet.wire.bodies import ClientConnection, ConsumerConnection, SubscriptionData


def test_topics_are_those_with_an_offset_and_those_of_members() -> None:
    members = ConsumerConnection(
        connection_set=(ClientConnection("c"),),
        subscription_table={"paid": SubscriptionData("paid"), "%RETRY%g": SubscriptionData("%RETRY%g")},
        message_model="BROADCASTING",
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    )
    content = described("g", ["a:1"], {"orders", "%RETRY%g"}, {"broker-a": ConsumerConnection(), "broker-b": members})
    group = read_group(content, "g")
    assert (group.group_name, [one.topic for one in group.spec.subscriptions]) == ("g", ["orders", "paid"])
    assert (group.spec.message_model.value, group.spec.consume_from_where.value) == ("Broadcasting", "FirstOffset")


def test_a_group_at_rest_has_the_defaults_and_one_without_topics_is_not_known() -> None:
    group = read_group(described("A_group", ["a:1"], {"orders"}, {}), "g")
    assert (group.spec.message_model.value, group.spec.consume_from_where.value) == ("Clustering", "LastOffset")
    assert described("g", ["a:1"], {"%RETRY%g"}, {"broker-a": ConsumerConnection()}) is None
