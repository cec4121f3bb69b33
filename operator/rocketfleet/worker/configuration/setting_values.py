"""A setting's value as it is written, in JSON or as text, turned into what the consumer takes, or into one sentence.

Every function here takes what was given and the name under which it was given, for the sentence.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.consumer.settings import GROUP_NAME
from rocketfleet.consumer.subscription import ALL, Subscription
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.configuration.setting_table import Kind, Setting

_SQL = "sql:"
ENTRY_KEYS = {Kind.SUBSCRIPTIONS: ("topic", "expression", "type"), Kind.QUEUES: ("topic", "broker", "queueId")}


# -- from JSON --------------------------------------------------------------------------------------------------------


def from_json(setting: Setting, value: object) -> object:
    """Check one value of a settings file."""
    key = setting.key
    if setting.kind is Kind.CHOICE or (setting.kind is Kind.STRATEGY and isinstance(value, str)):
        return _choice(setting, value)
    readers: dict[Kind, Callable[[object, str], object]] = {
        Kind.TEXT: _text,
        Kind.NUMBER: _number,
        Kind.SECONDS: _seconds,
        Kind.SWITCH: _switch,
        Kind.TEXTS: _texts,
        Kind.SUBSCRIPTIONS: _subscriptions,
        Kind.QUEUES: _queues,
        Kind.STRATEGY: _object,
    }
    return readers[setting.kind](value, key)


def _choice(setting: Setting, value: object) -> str:
    if isinstance(value, str) and value in setting.choices:
        return value
    raise SettingsError(f"{setting.key} is {_shown(value)}: choose one of {', '.join(setting.choices)}")


def _text(value: object, key: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise SettingsError(f"{key} is {_shown(value)}: give a text")


def _number(value: object, key: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise SettingsError(f"{key} is {_shown(value)}: give a whole number")


def _seconds(value: object, key: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise SettingsError(f"{key} is {_shown(value)}: give a number of seconds")


def _switch(value: object, key: str) -> bool:
    if isinstance(value, bool):
        return value
    raise SettingsError(f"{key} is {_shown(value)}: give true or false")


def _list(value: object, key: str) -> list[object]:
    if isinstance(value, list):
        return value
    raise SettingsError(f"{key} is {_shown(value)}: give a list")


def _object(value: object, key: str) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    raise SettingsError(f"{key} is {_shown(value)}: give an object")


def _texts(value: object, key: str) -> list[str]:
    return [_text(item, f"{key}[{i}]") for i, item in enumerate(_list(value, key))]


def _subscriptions(value: object, key: str) -> list[Subscription]:
    found = []
    for i, item in enumerate(_list(value, key)):
        place = f"{key}[{i}]"
        entry = _known(_object(item, place), place, ENTRY_KEYS[Kind.SUBSCRIPTIONS])
        if "topic" not in entry:
            raise SettingsError(f"{place} has no topic: every subscription names one")
        topic = _text(entry["topic"], f"{place}.topic")
        expression = _text(entry.get("expression", ALL), f"{place}.expression")
        kind = _text(entry.get("type", ExpressionType.TAG.value), f"{place}.type")
        kinds = [each.value for each in ExpressionType]
        if kind not in kinds:
            raise SettingsError(f"{place}.type is {_shown(kind)}: choose one of {', '.join(kinds)}")
        found.append(_subscription(topic, expression, ExpressionType(kind), place))
    return found


def _queues(value: object, key: str) -> list[MessageQueue]:
    found = []
    for i, item in enumerate(_list(value, key)):
        place = f"{key}[{i}]"
        entry = _known(_object(item, place), place, ENTRY_KEYS[Kind.QUEUES])
        for name in ENTRY_KEYS[Kind.QUEUES]:
            if name not in entry:
                raise SettingsError(f"{place} has no {name}: a queue is a topic, a broker and a queueId")
        found.append(
            MessageQueue(
                _text(entry["topic"], f"{place}.topic"),
                _text(entry["broker"], f"{place}.broker"),
                _number(entry["queueId"], f"{place}.queueId"),
            )
        )
    return found


def _known(entry: Mapping[str, object], place: str, names: tuple[str, ...]) -> dict[str, object]:
    """The entry without what is null; what is not one of `names` is an error, for it would have no effect."""
    unknown = sorted(entry.keys() - set(names))
    if unknown:
        raise SettingsError(f"{place} has no key {unknown[0]!r}: there are {', '.join(names)}")
    return {name: value for name, value in entry.items() if value is not None}


def _shown(value: object) -> str:
    """A wrong value, short enough for a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


# -- from text --------------------------------------------------------------------------------------------------------


def subscription_from_text(text: str) -> Subscription:
    """`T`, `T=a||b` or `T=sql:price > 5`."""
    topic, _, expression = text.partition("=")
    topic, expression = topic.strip(), expression.strip()
    if not topic:
        raise SettingsError(f"{text!r} names no topic: write TOPIC, TOPIC=TAGS or TOPIC=sql:EXPRESSION")
    kind = ExpressionType.TAG
    if expression.lower().startswith(_SQL):
        kind, expression = ExpressionType.SQL92, expression[len(_SQL) :].strip()
        if not expression:
            raise SettingsError(f"{text!r} has no expression after {_SQL!r}")
    return _subscription(topic, expression or ALL, kind, text)


def queue_from_text(text: str) -> MessageQueue:
    """`topic:broker:id`; a broker's name may have colons in it, a topic's can't."""
    topic, _, rest = text.strip().partition(":")
    broker, _, number = rest.rpartition(":")
    if not (topic and broker and number.isascii() and number.isdigit()):
        raise SettingsError(f"{text!r} is not a queue: write topic:broker:id, as orders:broker-a:3")
    return MessageQueue(topic, broker, int(number))


def items_from_text(text: str) -> list[str]:
    """A list as an environment variable has it: separated by semicolons or line ends."""
    return [item.strip() for item in text.replace("\n", ";").split(";") if item.strip()]


def moment(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time, which has to say its zone."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise SettingsError(f"consumeTimestamp is {text!r}: write date, time and zone, as 2026-01-31T08:00:00Z")
    return parsed.timestamp()


def _subscription(topic: str, expression: str, kind: ExpressionType, place: str) -> Subscription:
    if not GROUP_NAME.fullmatch(topic):
        raise SettingsError(f"{place}: a topic's name has letters, digits, '_', '-', '%' and '|' only, not {topic!r}")
    try:
        return Subscription(topic, expression, kind)
    except ValueError as error:
        raise SettingsError(f"{place}: {error}") from error
