"""Whether what the members subscribe to is what the manifest says, topic by topic: a pure comparison.

RocketMQ keeps one subscription a topic for the whole group, that of whoever subscribed last, and filters for everybody
by it. A member that asks for something else, whatever language it is written in, makes the others skip messages without
a word. The brokers are asked for what they filter by, and the members that are asked through them anyway (guests,
somebody's own consumers) for what they want; our own workers have what their pods were made with.
"""

from collections.abc import Iterable, Iterator, Mapping

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.controller.planning.snapshot import Subscribed
from rocketfleet.controller.resources.shared_settings import ALL, canonical, wanted_of
from rocketfleet.wire.bodies import SubscriptionData
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.topics import RETRY_PREFIX

Wanted = Mapping[str, str]  # topic → what of it, in words
NOTHING = "nothing"


def words(kind: str, expression: str) -> str:
    """An expression as people read it, the same for all that mean the same."""
    found = canonical(kind, expression)
    return found[1] if found[0] == ExpressionType.TAG.value else f"{found[0]} {found[1]}"


def wanted_topics(group: ConsumerGroup) -> dict[str, str]:
    """What the manifest wants."""
    return {each.topic: words(*wanted_of(each)) for each in group.spec.subscriptions}


def read(found: Iterable[SubscriptionData]) -> dict[str, str]:
    """What a member, or a broker, says. Every group also has its retry topic."""
    return {
        each.topic: words(each.expression_type or ExpressionType.TAG.wire, each.sub_string or ALL)
        for each in found
        if not each.topic.startswith(RETRY_PREFIX)
    }


def disagreements(group: ConsumerGroup, subscribed: Subscribed) -> list[str]:
    """What is not as the manifest says, in words, members first: a broker only repeats what one of them has said."""
    wanted = wanted_topics(group)
    members = [
        f"{member} wants {difference}"
        for member, theirs in sorted(subscribed.members.items())
        for difference in _differences(wanted, theirs)
    ]
    if members:
        return members
    return [
        f"{broker} filters for the whole group by {difference}, as the member said that subscribed last"
        for broker, theirs in sorted(subscribed.brokers.items())
        for difference in _differences(wanted, theirs)
    ]


def _differences(wanted: Wanted, theirs: Wanted) -> Iterator[str]:
    for topic in sorted(wanted.keys() | theirs.keys()):
        has, should = theirs.get(topic, NOTHING), wanted.get(topic, NOTHING)
        if has != should:
            yield f"{has} of {topic}, the manifest says {should}"
