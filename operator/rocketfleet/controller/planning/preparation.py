"""What a group should have at its brokers, what it lacks there, and when to look again: pure.

A group is prepared broker by broker, by what each broker says and not by what was once written: a group may be moved to
another RocketMQ, a broker may be added that creates no groups by itself, a broker may come back with an empty disk, a
topic may grow while nobody consumes it. Each time some broker lacks something, and that is written.

What a broker said is believed as long as it is the same *place*: the same master, over the same connection, with the
same queues. A broker that was away has another connection when it is back, so what it may have forgotten is read again;
what somebody has changed by hand is found at the slow interval. A broker that does not answer keeps nobody waiting: it
is prepared when it is back.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.consumer.settings import ConsumeMode, InitialOffset
from rocketfleet.wire.bodies import SubscriptionGroupConfig
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel
from rocketfleet.wire.queue import MessageQueue

DEFAULT_RETRIES = 16
READ_AGAIN = 600.0  # seconds after which a broker is asked although nothing seems to have changed, give or take a fifth
ASK_AGAIN = 15.0  # seconds after which one that did not answer is asked again, unless it is connected to earlier


# -- what is wanted ---------------------------------------------------------------------------------------------------


def topics_of(group: ConsumerGroup) -> tuple[str, ...]:
    """The subscribed topics, each once."""
    return tuple(dict.fromkeys(subscription.topic for subscription in group.spec.subscriptions))


def preparation_of(group: ConsumerGroup) -> str:
    """A hash of all in the manifest that says what is to be at the brokers, and of which RocketMQ they are."""
    spec = group.spec
    content = [
        sorted(spec.cluster.name_servers),
        group.group_name,
        sorted(topics_of(group)),
        spec.message_model.value,
        spec.consume_mode.value,
        spec.consume_from_where.value,
        spec.consume_timestamp,
        spec.initial_offset.value,
        spec.consume.max_reconsume_times,
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]


def wanted_settings(group: ConsumerGroup, there: SubscriptionGroupConfig | None) -> SubscriptionGroupConfig:
    """The group's settings at a broker: those that are there, changed where the manifest says something."""
    spec = group.spec
    retries = spec.consume.max_reconsume_times
    base = SubscriptionGroupConfig(group_name=group.group_name) if there is None else there
    return dataclasses.replace(
        base,
        retry_max_times=DEFAULT_RETRIES if retries < 0 else retries,
        consume_message_orderly=spec.consume_mode is ConsumeMode.ORDERLY,
        consume_broadcast_enable=base.consume_broadcast_enable or spec.message_model is MessageModel.BROADCASTING,
        attributes={},  # those sent along would be read as changes; the broker keeps what it has
    )


def has_start_offsets(group: ConsumerGroup) -> bool:
    """Whether start offsets are written before the first pod."""
    spec = group.spec
    return spec.initial_offset is InitialOffset.STRICT and spec.message_model is not MessageModel.BROADCASTING


def has_beginning(group: ConsumerGroup) -> bool:
    """Whether it is written down when the group began."""
    return has_start_offsets(group) and group.spec.consume_from_where is ConsumeFromWhere.LAST_OFFSET


# -- what is there ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What a broker says of a group."""

    settings: SubscriptionGroupConfig | None
    begun: frozenset[str] = frozenset()  # topics that it knows the group to have begun with
    unset: frozenset[MessageQueue] = frozenset()  # queues without an offset


@dataclass(frozen=True, slots=True)
class Lack:
    """What is to be written at a broker."""

    settings: bool = False
    beginnings: frozenset[str] = frozenset()  # topics
    starts: frozenset[MessageQueue] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.settings or self.beginnings or self.starts)


def lack_of(group: ConsumerGroup, found: Found, taken: Collection[str] = ()) -> Lack:
    """What a broker lacks. Topics that members subscribe to are theirs: a member may commit at any moment."""
    there = found.settings
    differs = there is None or wanted_settings(group, there) != dataclasses.replace(there, attributes={})
    ours = frozenset(topics_of(group)) - frozenset(taken) if has_start_offsets(group) else frozenset[str]()
    beginnings = ours - found.begun if has_beginning(group) else frozenset[str]()
    starts = frozenset(queue for queue in found.unset if queue.topic in ours and queue.topic not in beginnings)
    return Lack(differs, beginnings, starts)


# -- what is remembered -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupBroker:
    """A broker of the group as it is now. What it said while any of this was otherwise does not count."""

    address: str | None  # of its master; None: it has none now
    connection: int  # the number of the connection to it; 0: there is none
    queues: frozenset[MessageQueue]


@dataclass(frozen=True, slots=True)
class BrokerFindings:
    """What a broker was found to have."""

    place: GroupBroker
    wanted: str  # `preparation_of` the group at that time
    again: float  # when to look again, whatever happens
    lacks: bool | None = None  # None: it did not answer
    left: bool = False  # something is missing, and left to the members that are there


@dataclass(slots=True)
class Preparation:
    """What is remembered of a group's brokers. `source` is the client that they were asked with: another one may be
    another RocketMQ.
    """

    source: object = None
    looks: dict[str, BrokerFindings] = field(default_factory=dict)

    def asked_with(self, source: object) -> None:
        """Forget everything if it comes from elsewhere."""
        if self.source is not source:
            self.source = source
            self.looks.clear()


@dataclass(frozen=True, slots=True)
class PreparationState:
    """How far the group is prepared."""

    prepared: bool | None = None  # pods can come; None: no broker could be asked
    lacking: frozenset[str] = frozenset()  # brokers that answer and lack something


def due(
    looks: Mapping[str, BrokerFindings], places: Mapping[str, GroupBroker], wanted: str, now: float, *, nobody: bool
) -> frozenset[str]:
    """The brokers to look at now. `nobody`: the group has no members, so nothing is left to them any longer."""

    def is_due(broker: str, place: GroupBroker) -> bool:
        look = looks.get(broker)
        if look is None or look.place != place or look.wanted != wanted or now >= look.again:
            return True
        return look.left and nobody

    return frozenset(broker for broker, place in places.items() if is_due(broker, place))


def next_look(now: float, *, answered: bool, random: Callable[[], float]) -> float:
    """When to look again: at slow and uneven intervals, or thousands of groups would ask in the same moment."""
    return now + READ_AGAIN * (0.8 + 0.4 * random()) if answered else now + ASK_AGAIN


def standing_of(looks: Mapping[str, BrokerFindings], places: Collection[str], wanted: str) -> PreparationState:
    """The sum of it. Pods can come when one broker has everything: all that answer are prepared at once, so the others
    came later, or it failed there. A pod that is missing must not wait for them: what they lack, members can do without
    or find at the other brokers.
    """
    answers = {
        broker: look.lacks
        for broker, look in looks.items()
        if broker in places and look.wanted == wanted and look.lacks is not None
    }
    lacking = frozenset(broker for broker, lacks in answers.items() if lacks)
    return PreparationState(len(lacking) < len(answers) if answers else None, lacking)
