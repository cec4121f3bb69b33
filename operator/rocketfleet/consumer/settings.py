"""What a consumer is told when it is made. Names are those of Java's DefaultMQPushConsumer where it has them.

The defaults stand here for everybody: the worker's options and settings file take them from here
(`worker/configuration/setting_table.py`), and a test holds the manifest's against them.

Everything is checked here, before anything is connected: a mistake in a manifest or a call is one sentence, not a
behaviour.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rocketfleet.consumer.delivery.flow import QueueLimits, TopicLimits
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel

GROUP_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")
DEFAULT_HEARTBEAT = 30.0
LONGEST_HEARTBEAT = 60.0  # seconds: the broker gives a silent member up after 120
_FROM_OTHERS: Any = None  # a default that is made of other fields
MAX_GROUP_NAME = 120  # `%RETRY%` and `%DLQ%` are put in front of it, and a topic's name has 127 characters


class ConsumeMode(StrEnum):
    CONCURRENT = "Concurrent"
    ORDERLY = "Orderly"


class InitialOffset(StrEnum):
    """Whether the broker's answer for a group without offsets is taken at its word."""

    STRICT = "Strict"  # no offset stored means none: consumeFromWhere decides
    NATIVE = "Native"  # as Java: the broker answers 0 for a young queue, whatever consumeFromWhere says


class Handover(StrEnum):
    EXCLUSIVE = "Exclusive"  # a queue is pulled only under its broker lock
    EAGER = "Eager"  # Java's way, for groups that are shared with Java members


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """One member of one consumer group. Times are in seconds."""

    group: str
    subscriptions: tuple[Subscription, ...]
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_mode: ConsumeMode = ConsumeMode.CONCURRENT
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.LAST_OFFSET
    consume_timestamp: float | None = None  # seconds since the epoch; required with TIMESTAMP
    initial_offset: InitialOffset = InitialOffset.STRICT
    handover: Handover = Handover.EXCLUSIVE
    handover_timeout: float = 30.0
    drain_timeout: float = 30.0  # infinity: handlers are waited for until they are done, or a second request to stop

    consume_thread_min: int = 20
    consume_thread_max: int = _FROM_OTHERS  # as many as consume_thread_min
    consume_message_batch_max_size: int = 1
    consume_timeout: float = 15 * 60.0
    max_reconsume_times: int = -1  # -1: 16 for concurrent consumption, without end for orderly
    suspend_current_queue_time: float = 1.0
    auto_commit: bool = True  # orderly: commit what was handled; False: the handler says COMMIT

    pull_batch_size: int = 32
    pull_interval: float = 0.0
    limits: QueueLimits = field(default_factory=QueueLimits)
    topic_limits: TopicLimits = field(default_factory=TopicLimits)

    heartbeat_interval: float = _FROM_OTHERS  # 30 s, or as long as a lock lasts where that is less
    persist_interval: float = 5.0
    rebalance_interval: float = 20.0
    lock_interval: float = 20.0
    lock_lives: float = 60.0  # the broker's rocketmq.broker.rebalance.lockMaxLiveTime: how long an unrenewed lock lasts

    def __post_init__(self) -> None:
        if self.consume_thread_max is _FROM_OTHERS:
            object.__setattr__(self, "consume_thread_max", self.consume_thread_min)
        if self.heartbeat_interval is _FROM_OTHERS:
            object.__setattr__(self, "heartbeat_interval", min(DEFAULT_HEARTBEAT, self.lock_lives))
        if problems := self._problems():
            raise ValueError("; ".join(problems))

    @property
    def locks_queues(self) -> bool:
        """Whether a queue needs the broker's lock: orderly consumption always does, as in Java."""
        return self.message_model is MessageModel.CLUSTERING and (
            self.handover is Handover.EXCLUSIVE or self.consume_mode is ConsumeMode.ORDERLY
        )

    @property
    def messages_per_pull(self) -> int:
        """A batch is what one pull has brought, unless handlers are behind: so a pull asks for a whole one."""
        return max(self.pull_batch_size, self.consume_message_batch_max_size)

    @property
    def is_orderly(self) -> bool:
        return self.consume_mode is ConsumeMode.ORDERLY

    @property
    def is_broadcasting(self) -> bool:
        return self.message_model is MessageModel.BROADCASTING

    def _problems(self) -> list[str]:
        problems: list[str] = []
        if not self.group or len(self.group) > MAX_GROUP_NAME or not GROUP_NAME.fullmatch(self.group):
            problems.append(
                f"the group name {self.group!r} is not allowed: "
                f"use up to {MAX_GROUP_NAME} letters, digits, '_', '-', '%' and '|'"
            )
        if self.group == "DEFAULT_CONSUMER":
            problems.append("the group name DEFAULT_CONSUMER is reserved: choose one of your own")
        if not self.subscriptions:
            problems.append(f"group {self.group} subscribes to nothing: name at least one topic")
        topics = [subscription.topic for subscription in self.subscriptions]
        problems.extend(
            f"topic {topic} is subscribed twice: join the expressions with ' || '"
            for topic in sorted({topic for topic in topics if topics.count(topic) > 1})
        )
        if (self.consume_timestamp is not None) != (self.consume_from_where is ConsumeFromWhere.TIMESTAMP):
            problems.append("consume_timestamp is given if, and only if, consume_from_where is TIMESTAMP")
        if not 1 <= self.consume_thread_min <= self.consume_thread_max <= 1000:
            problems.append(
                f"threads from {self.consume_thread_min} to {self.consume_thread_max}: "
                "give 1 ≤ minimum ≤ maximum ≤ 1000"
            )
        for name, value, low, high in (
            ("consume_message_batch_max_size", self.consume_message_batch_max_size, 1, 1024),
            ("pull_batch_size", self.pull_batch_size, 1, 1024),
            ("limits.count", self.limits.count, 1, 65535),
            ("limits.size_mib", self.limits.size_mib, 1, 1024),
            ("limits.span", self.limits.span, 1, 65535),
        ):
            if not low <= value <= high:
                problems.append(f"{name} is {value}: it must be from {low} to {high}")
        if not 1.0 <= self.consume_timeout <= 24 * 3600.0:
            problems.append(f"consume_timeout is {self.consume_timeout:g} s: it must be from 1 s to a day")
        if self.max_reconsume_times < -1:
            problems.append(f"max_reconsume_times is {self.max_reconsume_times}: -1 is the default, 0 means no retry")
        if not 0.0 <= self.pull_interval <= 24 * 3600.0:
            problems.append(f"pull_interval is {self.pull_interval:g} s: it must be from 0 s, no pause, to a day")
        if not 0.01 <= self.suspend_current_queue_time <= 30.0:
            problems.append("suspend_current_queue_time must be from 10 ms to 30 s")
        for name, seconds in (
            ("handover_timeout", self.handover_timeout),
            ("drain_timeout", self.drain_timeout),
            ("heartbeat_interval", self.heartbeat_interval),
            ("persist_interval", self.persist_interval),
            ("rebalance_interval", self.rebalance_interval),
            ("lock_interval", self.lock_interval),
            ("lock_lives", self.lock_lives),
        ):
            if not seconds > 0:
                problems.append(f"{name} is {seconds:g}: it must be more than 0 seconds")
        if not 1.0 <= self.lock_lives <= 3600.0:
            problems.append(f"lock_lives is {self.lock_lives:g} s: it must be from 1 s to an hour, as at the broker")
        longest = min(LONGEST_HEARTBEAT, self.lock_lives) if self.locks_queues else LONGEST_HEARTBEAT
        if self.heartbeat_interval > longest:
            problems.append(
                f"heartbeat_interval is {self.heartbeat_interval:g} s: it must be at most {longest:g} s, so that the "
                "broker does not give up a member that still believes in its locks"
            )
        return problems
