"""Rules about what is consumed, from where, and how."""

from collections.abc import Callable
from datetime import UTC, datetime

from rocketfleet.api.rule import Rule
from rocketfleet.api.rules.form import form, has_form, matches
from rocketfleet.api.rules.naming import NAME
from rocketfleet.api.spec import Consume, ConsumerGroupSpec, TopicSubscription
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.enums import ConsumeFromWhere, ExpressionType, MessageModel
from rocketfleet.wire.topics import RETRY_PREFIX

ALL = "[ \t\r\n]*[*][ \t\r\n]*"
NO_TAG = "[| \t\r\n]*"
NO_CONDITION = "[* \t\r\n]*"
ALL_AMONG_TAGS = f"((?s:.*)[|][|])?{ALL}([|][|](?s:.*))?"
TAGS = "[ \t\r\n]*([^,;| \t\r\n]+[ \t\r\n]*)?([|][|][ \t\r\n]*([^,;| \t\r\n]+[ \t\r\n]*)?)*"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _spec(name: str, message: str, cel: str, holds: Callable[[ConsumerGroupSpec], bool], field: str) -> Rule:
    return Rule(name, "spec", message, cel, holds, field)


def _subscription(name: str, message: str, cel: str, holds: Callable[[TopicSubscription], bool], field: str) -> Rule:
    return Rule(name, "spec.subscriptions[]", message, cel, holds, field)


SUBSCRIPTIONS: tuple[Rule, ...] = (
    Rule(
        "topics-differ",
        "spec.subscriptions",
        "a topic is named twice: keep one, and join the expressions with ' || '",
        "self.all(a, self.exists_one(b, b.topic == a.topic))",
        lambda subscriptions: len({s.topic for s in subscriptions}) == len(subscriptions),
    ),
    form(
        "topic-form",
        "spec.subscriptions[].topic",
        NAME,
        "a topic's name has letters, digits, '_', '-', '%' and '|' only",
    ),
    Rule(
        "no-retry-topic",
        "spec.subscriptions[].topic",
        "a retry topic belongs to its group, which reads it by itself: remove it",
        "!self.startsWith('%RETRY%')",
        lambda topic: not topic.startswith(RETRY_PREFIX),
    ),
    _subscription(
        "tags-make-sense",
        "write tags as a || b, or * alone for all messages; for a condition on properties set type: SQL92",
        f"self.type != 'Tag' || {matches('self.expression', ALL)} || "
        f"!({matches('self.expression', NO_TAG)} || {matches('self.expression', ALL_AMONG_TAGS)})",
        lambda s: (
            s.type is not ExpressionType.TAG
            or has_form(s.expression, ALL)
            or not (has_form(s.expression, NO_TAG) or has_form(s.expression, ALL_AMONG_TAGS))
        ),
        ".expression",
    ),
    _subscription(
        "tags-can-match",
        "a tag has no comma, semicolon, blank or single | in it, so no message would match: "
        "join tags with ||, as created || paid",
        f"self.type != 'Tag' || {matches('self.expression', TAGS)}",
        lambda s: s.type is not ExpressionType.TAG or has_form(s.expression, TAGS),
        ".expression",
    ),
    _subscription(
        "sql-is-a-condition",
        "SQL92 needs a condition, as price > 5 AND region = 'eu'; for all messages leave type and expression out",
        f"self.type != 'SQL92' || !{matches('self.expression', NO_CONDITION)}",
        lambda s: s.type is not ExpressionType.SQL92 or not has_form(s.expression, NO_CONDITION),
        ".expression",
    ),
)


def _after_epoch(spec: ConsumerGroupSpec) -> bool:
    if spec.consume_timestamp is None:
        return True
    try:
        return datetime.fromisoformat(spec.consume_timestamp) >= EPOCH
    except ValueError:
        return False


CONSUMING: tuple[Rule, ...] = (
    _spec(
        "timestamp-given",
        "consumeFromWhere Timestamp needs the moment to begin at: give consumeTimestamp, as 2026-01-31T08:00:00Z",
        "self.consumeFromWhere != 'Timestamp' || has(self.consumeTimestamp)",
        lambda spec: spec.consume_from_where is not ConsumeFromWhere.TIMESTAMP or spec.consume_timestamp is not None,
        ".consumeTimestamp",
    ),
    _spec(
        "timestamp-only-with-timestamp",
        "it has a meaning only with consumeFromWhere: Timestamp: set that, or remove consumeTimestamp",
        "self.consumeFromWhere == 'Timestamp' || !has(self.consumeTimestamp)",
        lambda spec: spec.consume_from_where is ConsumeFromWhere.TIMESTAMP or spec.consume_timestamp is None,
        ".consumeTimestamp",
    ),
    _spec(
        "timestamp-is-a-moment",
        "there is no such moment after 1970: write date, time and zone, as 2026-01-31T08:00:00Z",
        "!has(self.consumeTimestamp) || self.consumeTimestamp >= timestamp('1970-01-01T00:00:00Z')",
        _after_epoch,
        ".consumeTimestamp",
    ),
    _spec(
        "orderly-is-clustering",
        "Orderly needs the broker's locks, which Broadcasting does without: choose consumeMode Concurrent or "
        "messageModel Clustering",
        "!(self.consumeMode == 'Orderly' && self.messageModel == 'Broadcasting')",
        lambda spec: not (spec.consume_mode is ConsumeMode.ORDERLY and spec.message_model is MessageModel.BROADCASTING),
        ".consumeMode",
    ),
    _spec(
        "auto-commit-off-is-orderly",
        "only Orderly handlers can say when to commit: remove autoCommit, or set consumeMode: Orderly",
        "self.consume.autoCommit || self.consumeMode == 'Orderly'",
        lambda spec: spec.consume.auto_commit or spec.consume_mode is ConsumeMode.ORDERLY,
        ".consume.autoCommit",
    ),
)


def _max_threads(consume: Consume) -> bool:
    return consume.max_threads is None or consume.max_threads >= consume.threads


THREADS: tuple[Rule, ...] = (
    Rule(
        "max-threads-from-threads",
        "spec.consume",
        "maxThreads is less than threads: raise it or leave it out",
        "!has(self.maxThreads) || self.maxThreads >= self.threads",
        _max_threads,
        ".maxThreads",
    ),
)
