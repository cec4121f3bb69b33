"""What a worker can be told about its group, as one table: the key in a manifest, the option, what kind of value, and
which field of `ConsumerSettings` it becomes.

The settings file, the command line and the environment all read this table, so a setting that exists in one place
exists in all three, under names that follow from each other: `consume.batchSize`, `--batch-size`,
`ROCKETFLEET_BATCH_SIZE`. A default is the field's; only what is not a field has its default here.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from operator import attrgetter

from rocketfleet.allocation.consistent_hash import DEFAULT_VIRTUAL_NODES
from rocketfleet.allocation.machine_room_nearby import DEFAULT_SEPARATOR
from rocketfleet.allocation.strategies import DEFAULT_INNER, DEFAULT_STRATEGY, StrategyName
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings, Handover, InitialOffset
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel

_NOTHING_SAID = ConsumerSettings("any", (Subscription("any"),))


class OnTimeout(StrEnum):
    """A drain that did not make it in time."""

    PROCEED = "Proceed"  # delete the pod all the same; what was not committed comes again
    WAIT = "Wait"  # keep the pod and go on trying, until somebody decides


class Kind(Enum):
    TEXT = auto()
    NUMBER = auto()  # a whole one
    SECONDS = auto()  # may have a fraction
    SWITCH = auto()
    CHOICE = auto()
    TEXTS = auto()  # a list
    SUBSCRIPTIONS = auto()  # a list of {topic, expression, type}
    QUEUES = auto()  # a list of {topic, broker, queueId}
    STRATEGY = auto()  # a strategy's name, or the same keys as `allocation` has


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table. `words` are the choices. `many` is what a list is called in the environment: `--topic` is
    read from TOPICS."""

    key: str
    option: str
    kind: Kind
    help: str
    field: str = ""  # of ConsumerSettings; limits.count is a field of a field
    words: type[Enum] | None = None
    many: str = ""
    metavar: str | None = None
    constant: str | int | None = None  # the default of what is not a field
    otherwise: str = ""  # what holds by default, where that is not a value

    @property
    def parameter(self) -> str:
        """The name of the option's value; with the prefix ROCKETFLEET_ and in capitals, of its variable."""
        return (self.many or self.option).replace("-", "_")

    @property
    def choices(self) -> tuple[str, ...]:
        return () if self.words is None else tuple(word.value for word in self.words)

    @property
    def default(self) -> object:
        """What holds where nothing at all is said. None: no limit, or there is none."""
        if self.key in REQUIRED:
            return None
        return attrgetter(self.field)(_NOTHING_SAID) if self.field else self.constant

    @property
    def described(self) -> str:
        """What it is about, and the default in brackets."""
        said = self.default_described
        return f"{self.help} [{said}]" if said else self.help

    @property
    def default_described(self) -> str:
        """The default as people read it; nothing if there is none."""
        return self.otherwise or _as_text(self.default)


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


REQUIRED = ("groupName", "subscriptions")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "groupName",
        "group",
        Kind.TEXT,
        "The consumer group.",
        metavar="NAME",
        field="group",
    ),
    Setting(
        "subscriptions",
        "topic",
        Kind.SUBSCRIPTIONS,
        "A topic to consume, with tags (T=a||b) or an SQL92 expression (T=sql:price > 5). Repeatable; in the "
        "environment separated by semicolons.",
        many="topics",
        metavar="T[=EXPR]",
        field="subscriptions",
    ),
    Setting(
        "messageModel",
        "message-model",
        Kind.CHOICE,
        "Clustering: members share the messages. Broadcasting: each member gets all of them.",
        words=MessageModel,
        field="message_model",
    ),
    Setting(
        "consumeMode",
        "consume-mode",
        Kind.CHOICE,
        "Concurrent: messages of a queue are handled in parallel. Orderly: one after the other, in the queue's order.",
        words=ConsumeMode,
        field="consume_mode",
    ),
    Setting(
        "consumeFromWhere",
        "consume-from-where",
        Kind.CHOICE,
        "Where a group without a stored offset starts consuming.",
        words=ConsumeFromWhere,
        field="consume_from_where",
    ),
    Setting(
        "consumeTimestamp",
        "consume-timestamp",
        Kind.TEXT,
        "With Timestamp: the time to start from, such as 2026-01-31T08:00:00Z.",
        metavar="RFC3339",
        field="consume_timestamp",
    ),
    Setting(
        "initialOffset",
        "initial-offset",
        Kind.CHOICE,
        "Strict: a queue without a stored offset starts as consumeFromWhere says. Native: like Java's client, a "
        "young queue starts at 0.",
        words=InitialOffset,
        field="initial_offset",
    ),
    Setting(
        "allocation.strategy",
        "allocation",
        Kind.CHOICE,
        "Strategy that allocates queues to members.",
        words=StrategyName,
        constant=DEFAULT_STRATEGY,
    ),
    Setting(
        "allocation.virtualNodes",
        "virtual-nodes",
        Kind.NUMBER,
        "ConsistentHash: nodes on the ring per member.",
        constant=DEFAULT_VIRTUAL_NODES,
    ),
    Setting(
        "allocation.rooms",
        "room",
        Kind.TEXTS,
        "MachineRoom: a room to consume from. Repeatable; in the environment separated by semicolons.",
        many="rooms",
        metavar="NAME",
    ),
    Setting(
        "allocation.separator",
        "room-separator",
        Kind.TEXT,
        "MachineRoomNearby: separator after the room in broker names and client ids.",
        metavar="TEXT",
        constant=DEFAULT_SEPARATOR,
    ),
    Setting(
        "allocation.inner",
        "inner-allocation",
        Kind.STRATEGY,
        "MachineRoomNearby: strategy that allocates queues within a room.",
        words=StrategyName,
        constant=DEFAULT_INNER,
    ),
    Setting(
        "allocation.queues",
        "queue",
        Kind.QUEUES,
        "Config: a queue of this member, as topic:broker:id. Repeatable; in the environment separated by semicolons.",
        many="queues",
        metavar="QUEUE",
    ),
    Setting(
        "consume.threads",
        "threads",
        Kind.NUMBER,
        "Threads (or tasks) that handle messages.",
        field="consume_thread_min",
    ),
    Setting(
        "consume.maxThreads",
        "max-threads",
        Kind.NUMBER,
        "Upper limit of handler threads while many messages wait.",
        field="consume_thread_max",
        otherwise="threads",
    ),
    Setting(
        "consume.batchSize",
        "batch-size",
        Kind.NUMBER,
        "Messages per handler call, if the handler takes a list.",
        field="consume_message_batch_max_size",
    ),
    Setting(
        "consume.pullBatchSize",
        "pull-batch-size",
        Kind.NUMBER,
        "Messages per pull; at least batch-size.",
        field="pull_batch_size",
    ),
    Setting(
        "consume.pullIntervalSeconds",
        "pull-interval",
        Kind.SECONDS,
        "Seconds between pulls from a queue.",
        field="pull_interval",
    ),
    Setting(
        "consume.queueThreshold",
        "queue-threshold",
        Kind.NUMBER,
        "Messages buffered in memory per queue.",
        field="limits.count",
    ),
    Setting(
        "consume.queueThresholdMiB",
        "queue-threshold-mib",
        Kind.NUMBER,
        "MiB buffered in memory per queue.",
        field="limits.size_mib",
    ),
    Setting(
        "consume.topicThreshold",
        "topic-threshold",
        Kind.NUMBER,
        "Messages buffered in memory per topic.",
        field="topic_limits.count",
        otherwise="no limit",
    ),
    Setting(
        "consume.topicThresholdMiB",
        "topic-threshold-mib",
        Kind.NUMBER,
        "MiB buffered in memory per topic.",
        field="topic_limits.size_mib",
        otherwise="no limit",
    ),
    Setting(
        "consume.maxSpan",
        "max-span",
        Kind.NUMBER,
        "Largest distance between the lowest and highest offset in flight in a queue.",
        field="limits.span",
    ),
    Setting(
        "consume.maxReconsumeTimes",
        "max-reconsume-times",
        Kind.NUMBER,
        "Retries before a message is dead-lettered; -1: 16, or unlimited if Orderly.",
        field="max_reconsume_times",
    ),
    Setting(
        "consume.consumeTimeoutSeconds",
        "consume-timeout",
        Kind.SECONDS,
        "A handler running longer than this many seconds is considered hung.",
        field="consume_timeout",
    ),
    Setting(
        "consume.suspendSeconds",
        "suspend",
        Kind.SECONDS,
        "Orderly: seconds before a message is retried.",
        field="suspend_current_queue_time",
    ),
    Setting(
        "consume.autoCommit",
        "auto-commit",
        Kind.SWITCH,
        "Orderly: commit handled messages automatically; otherwise the handler returns COMMIT.",
        field="auto_commit",
    ),
    Setting(
        "rebalance.handover",
        "handover",
        Kind.CHOICE,
        "Exclusive: a queue is consumed only while its lock is held. Eager: like Java's client, without waiting for "
        "the lock.",
        words=Handover,
        field="handover",
    ),
    Setting(
        "rebalance.handoverTimeoutSeconds",
        "handover-timeout",
        Kind.SECONDS,
        "Seconds that running handlers get to finish before their queue is handed over to another member.",
        field="handover_timeout",
    ),
    Setting(
        "rebalance.intervalSeconds",
        "rebalance-interval",
        Kind.SECONDS,
        "Maximum seconds between rebalances.",
        field="rebalance_interval",
    ),
    Setting(
        "rebalance.lockIntervalSeconds",
        "lock-interval",
        Kind.SECONDS,
        "Seconds between lock renewals.",
        field="lock_interval",
    ),
    Setting(
        "rebalance.lockMaxLiveSeconds",
        "lock-max-live-time",
        Kind.SECONDS,
        "Seconds until a lock that is not renewed expires, as configured at the brokers "
        "(rocketmq.broker.rebalance.lockMaxLiveTime).",
        field="lock_lives",
    ),
    Setting(
        "rebalance.heartbeatSeconds",
        "heartbeat-interval",
        Kind.SECONDS,
        "Seconds between heartbeats: at most 60, and no longer than a lock lasts.",
        field="heartbeat_interval",
        otherwise="30, or less",
    ),
    Setting(
        "consume.persistIntervalSeconds",
        "persist-interval",
        Kind.SECONDS,
        "Maximum seconds between commits of offsets.",
        field="persist_interval",
    ),
    Setting(
        "shutdown.drainTimeoutSeconds",
        "drain-timeout",
        Kind.SECONDS,
        "Seconds that running handlers get to finish before shutdown.",
        field="drain_timeout",
    ),
    Setting(
        "shutdown.onTimeout",
        "on-drain-timeout",
        Kind.CHOICE,
        "After drain-timeout. Proceed: handlers are cut short. Wait: keep waiting until they finish, or for a second "
        "signal.",
        words=OnTimeout,
        constant=OnTimeout.PROCEED,
    ),
)

BY_KEY: dict[str, Setting] = {setting.key: setting for setting in SETTINGS}
