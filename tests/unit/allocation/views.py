"""What a member may see of a group, drawn by Hypothesis: members, queues of several topics, owners maybe stale."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from rocketfleet.allocation.balanced import balance
from rocketfleet.wire.queue import MessageQueue

# A busy machine must not fail a test.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

Allocation = Mapping[str, Collection[MessageQueue]]


@dataclass(frozen=True)
class View:
    members: tuple[str, ...]
    queues: tuple[MessageQueue, ...]
    owners: dict[MessageQueue, str] = field(default_factory=dict)

    @property
    def loads(self) -> Counter[str]:
        """How many of the queues each member holds."""
        holders = (self.owners.get(queue) for queue in self.queues)
        return Counter(holder for holder in holders if holder in set(self.members))

    def balance(self) -> dict[str, list[MessageQueue]]:
        return balance(self.members, self.queues, self.owners)


# Few letters, so that ids share prefixes; the last two sort differently by UTF-16 units and by code points.
MEMBER_IDS = st.text("ab-1ｚ😀", min_size=1, max_size=4)


def queues_of(topics: Collection[int], brokers: int = 2) -> tuple[MessageQueue, ...]:
    """Topics t0, t1, … of these many queues each, spread over the brokers."""
    return tuple(
        MessageQueue(f"t{topic}", f"broker-{number % brokers}", number // brokers)
        for topic, size in enumerate(topics)
        for number in range(size)
    )


def retry_queues(number: int) -> tuple[MessageQueue, ...]:
    """One on each of so many brokers, as a group's retry topic has them."""
    return tuple(MessageQueue("%RETRY%g", f"broker-{broker}", 0) for broker in range(number))


@st.composite
def views(
    draw: st.DrawFn, most_members: int = 9, most_topics: int = 5, largest_topic: int = 12, most_retries: int = 0
) -> View:
    members = draw(st.lists(MEMBER_IDS, min_size=1, max_size=most_members, unique=True))
    sizes = draw(st.lists(st.integers(1, largest_topic), min_size=1, max_size=most_topics))
    queues = (*queues_of(sizes), *retry_queues(draw(st.integers(0, most_retries))))
    holders = draw(st.lists(st.sampled_from([*members, "gone", None]), min_size=1, max_size=4))
    owners: dict[MessageQueue, str] = {}
    for queue in queues:
        holder = draw(st.sampled_from(holders))
        if holder is not None:
            owners[queue] = holder
    if draw(st.booleans()):
        owners[MessageQueue("deleted", "broker-0", 0)] = members[0]
    return View(tuple(members), queues, owners)


def owners_of(allocation: Allocation) -> dict[MessageQueue, str]:
    return {queue: member for member, share in allocation.items() for queue in share}


def kept(before: Mapping[MessageQueue, str], allocation: Allocation) -> int:
    """How many queues stay with the member that held them."""
    return sum(before.get(queue) == member for queue, member in owners_of(allocation).items())


def spreads(allocation: Allocation) -> dict[str, int]:
    """For each topic, by how many queues the largest and the smallest share of it differ."""
    counts = {member: Counter(queue.topic for queue in share) for member, share in allocation.items()}
    topics = {topic for count in counts.values() for topic in count}
    return {
        topic: max(count[topic] for count in counts.values()) - min(count[topic] for count in counts.values())
        for topic in topics
    }
