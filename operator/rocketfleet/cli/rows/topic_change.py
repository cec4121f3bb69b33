"""What `topic create --update` would change, and why it must not. Pure.

Queues are numbered from 0; a topic that is made smaller loses the last ones. Messages in them stay on the disk, and no
consumer sees them any more: no lag, no error. So a topic is made smaller in two steps: first nothing is written to the
queues that are to go, then, when they have been consumed, nobody reads them either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rocketfleet.base.counting import counted
from rocketfleet.cli.rows.topic_rows import MESSAGE_TYPE
from rocketfleet.wire.bodies import PERM_READ, PERM_WRITE, TopicConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocketfleet.wire.queue import MessageQueue

DEFAULT_QUEUES = 8
MOST_NAMED = 8  # queues named in a sentence


@dataclass(frozen=True, slots=True)
class RequestedTopic:
    """What the options say; None is not said."""

    queues: int | None = None
    read_queues: int | None = None
    write_queues: int | None = None
    message_type: str | None = None
    order: bool = False

    @property
    def contradiction(self) -> str | None:
        """What is wrong with the options by themselves."""
        if self.queues is not None and (self.read_queues, self.write_queues) != (None, None):
            return "--queues says both: give it, or --read-queues and --write-queues"
        return None


def wanted(name: str, asked: RequestedTopic, there: TopicConfig | None) -> TopicConfig:
    """A topic as it is to be at a broker: what was named changes, the rest stays as it is there, or is the default."""
    reading = asked.read_queues or asked.queues
    writing = asked.write_queues or asked.queues
    attributes = {MESSAGE_TYPE: asked.message_type.upper()} if asked.message_type else {}
    if there is None:
        one = reading or writing or DEFAULT_QUEUES
        return TopicConfig(
            topic_name=name,
            read_queue_nums=reading or one,
            write_queue_nums=writing or one,
            perm=PERM_READ | PERM_WRITE,
            order=asked.order,
            attributes=attributes,
        )
    changes: dict[str, Any] = {"order": asked.order or there.order, "attributes": attributes}
    return replace(
        there,
        read_queue_nums=reading or there.read_queue_nums,
        write_queue_nums=writing or there.write_queue_nums,
        **changes,
    )


def unread(config: TopicConfig) -> str | None:
    """Why a topic must not be like this: producers would write where nobody reads."""
    if config.write_queue_nums <= config.read_queue_nums:
        return None
    return (
        f"{counted(config.write_queue_nums, 'queue')} to write and {config.read_queue_nums} to read: messages in the "
        "queues that cannot be read would be lost. Give --read-queues at least as many as --write-queues"
    )


def hidden(there: TopicConfig, after: TopicConfig) -> range:
    """The queues that can be read now, and could not any more."""
    return range(after.read_queue_nums, there.read_queue_nums)


def refusal(after: TopicConfig, messages: Mapping[MessageQueue, int]) -> str | None:
    """Why a topic is not made smaller: messages in the queues that would go; and how to do it. None: it may be."""
    full = sorted(queue for queue, count in messages.items() if count)
    if not full:
        return None
    named = ", ".join(f"{queue.broker}/{queue.queue_id}" for queue in full[:MOST_NAMED])
    more = f" and {len(full) - MOST_NAMED} more" if len(full) > MOST_NAMED else ""
    count = sum(messages.values())
    name, smaller = after.topic_name, after.read_queue_nums
    return (
        f"{counted(count)} in the queues {named}{more} could not be read any more: nothing "
        "was changed. Make the topic smaller in two steps, so that they are consumed first:\n"
        f"  rocketfleet topic create {name} --update --write-queues {smaller}\n"
        f"  rocketfleet topic create {name} --update --read-queues {smaller} --allow-unreachable-messages\n"
        "the second when `rocketfleet lag` shows that every group has consumed those queues"
    )
