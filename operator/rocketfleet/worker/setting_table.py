"""What a worker can be told about its group, as one table: the key in a manifest, the option, what kind of value.

The settings file, the command line and the environment all read this table, so a setting that exists in one place
exists in all three, under names that follow from each other: `consume.batchSize`, `--batch-size`,
`ROCKETFLEET_BATCH_SIZE`. Defaults are not here but with the consumer: what is not given is not passed on.
"""

from dataclasses import dataclass
from enum import Enum, auto

from rocketfleet.allocation.strategies import MANIFEST_NAMES


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
    """One line of the table. `many` is what a list is called in the environment: `--topic` is read from TOPICS."""

    key: str
    option: str
    kind: Kind
    help: str
    choices: tuple[str, ...] = ()
    many: str = ""
    metavar: str | None = None

    @property
    def parameter(self) -> str:
        """The name of the option's value; with the prefix ROCKETFLEET_ and in capitals, of its variable."""
        return (self.many or self.option).replace("-", "_")


_STRATEGIES = tuple(MANIFEST_NAMES)

SETTINGS: tuple[Setting, ...] = (
    Setting("groupName", "group", Kind.TEXT, "The consumer group.", metavar="NAME"),
    Setting(
        "subscriptions",
        "topic",
        Kind.SUBSCRIPTIONS,
        "A topic to consume, with tags (T=a||b) or an SQL92 expression (T=sql:price > 5). Repeatable; in the "
        "environment separated by semicolons.",
        many="topics",
        metavar="T[=EXPR]",
    ),
    Setting(
        "messageModel",
        "message-model",
        Kind.CHOICE,
        "Do members share the messages, or does each get all of them? [Clustering]",
        ("Clustering", "Broadcasting"),
    ),
    Setting(
        "consumeMode",
        "consume-mode",
        Kind.CHOICE,
        "Side by side, or in the order of each queue? [Concurrent]",
        ("Concurrent", "Orderly"),
    ),
    Setting(
        "consumeFromWhere",
        "consume-from-where",
        Kind.CHOICE,
        "Where a group begins that has no offset stored. [LastOffset]",
        ("LastOffset", "FirstOffset", "Timestamp"),
    ),
    Setting(
        "consumeTimestamp",
        "consume-timestamp",
        Kind.TEXT,
        "With Timestamp: the moment to begin at, as 2026-01-31T08:00:00Z.",
        metavar="RFC3339",
    ),
    Setting(
        "initialOffset",
        "initial-offset",
        Kind.CHOICE,
        "Strict: no offset stored means none. Native: as Java, a young queue begins at 0. [Strict]",
        ("Strict", "Native"),
    ),
    Setting("allocation.strategy", "allocation", Kind.CHOICE, "How queues are shared out. [Averagely]", _STRATEGIES),
    Setting("allocation.virtualNodes", "virtual-nodes", Kind.NUMBER, "ConsistentHash: nodes on the ring a member."),
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
        "MachineRoomNearby: what follows the room in broker names and client ids. [@]",
        metavar="TEXT",
    ),
    Setting(
        "allocation.inner",
        "inner-allocation",
        Kind.STRATEGY,
        "MachineRoomNearby: how queues are shared out within a room. [Averagely]",
        _STRATEGIES,
    ),
    Setting(
        "allocation.queues",
        "queue",
        Kind.QUEUES,
        "Config: a queue of this member, as topic:broker:id. Repeatable; in the environment separated by semicolons.",
        many="queues",
        metavar="QUEUE",
    ),
    Setting("consume.threads", "threads", Kind.NUMBER, "Threads (or tasks) that handle messages. [20, up to 64]"),
    Setting("consume.maxThreads", "max-threads", Kind.NUMBER, "How many there may be while much is waiting."),
    Setting("consume.batchSize", "batch-size", Kind.NUMBER, "Messages a call, for a handler that takes a list. [1]"),
    Setting("consume.pullBatchSize", "pull-batch-size", Kind.NUMBER, "Messages a pull. [32]"),
    Setting("consume.pullIntervalSeconds", "pull-interval", Kind.SECONDS, "Pause between pulls of a queue. [0]"),
    Setting("consume.queueThreshold", "queue-threshold", Kind.NUMBER, "Messages in memory a queue. [1000]"),
    Setting("consume.queueThresholdMiB", "queue-threshold-mib", Kind.NUMBER, "The same in MiB. [100]"),
    Setting("consume.topicThreshold", "topic-threshold", Kind.NUMBER, "Messages in memory a topic. [no limit]"),
    Setting("consume.topicThresholdMiB", "topic-threshold-mib", Kind.NUMBER, "The same in MiB. [no limit]"),
    Setting("consume.maxSpan", "max-span", Kind.NUMBER, "How far offsets in flight may lie apart. [2000]"),
    Setting(
        "consume.maxReconsumeTimes",
        "max-reconsume-times",
        Kind.NUMBER,
        "Tries before the dead letters; -1: 16, or without end if Orderly. [-1]",
    ),
    Setting("consume.consumeTimeoutSeconds", "consume-timeout", Kind.SECONDS, "After this a handler hangs. [900]"),
    Setting("consume.suspendSeconds", "suspend", Kind.SECONDS, "Orderly: pause before a message is tried again. [1]"),
    Setting("consume.autoCommit", "auto-commit", Kind.SWITCH, "Orderly: commit without being told to. [yes]"),
    Setting(
        "rebalance.handover",
        "handover",
        Kind.CHOICE,
        "Exclusive: a queue is consumed only under its lock. Eager: as Java does. [Exclusive]",
        ("Exclusive", "Eager"),
    ),
    Setting(
        "rebalance.handoverTimeoutSeconds",
        "handover-timeout",
        Kind.SECONDS,
        "How long a queue that goes to another member waits for its handlers. [30]",
    ),
    Setting("rebalance.intervalSeconds", "rebalance-interval", Kind.SECONDS, "A round at least this often. [20]"),
    Setting("rebalance.lockIntervalSeconds", "lock-interval", Kind.SECONDS, "How often locks are renewed. [20]"),
    Setting("rebalance.heartbeatSeconds", "heartbeat-interval", Kind.SECONDS, "How often we say we live. [30]"),
    Setting("consume.persistIntervalSeconds", "persist-interval", Kind.SECONDS, "Commit at least this often. [5]"),
    Setting("shutdown.drainTimeoutSeconds", "drain-timeout", Kind.SECONDS, "What handlers get to finish. [30]"),
)

BY_KEY: dict[str, Setting] = {setting.key: setting for setting in SETTINGS}
