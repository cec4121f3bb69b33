"""What the members of a live group have to agree on, aspect by aspect, and which aspects two of them differ in.

RocketMQ keeps one subscription for a group, that of whoever subscribed last, and filters for everybody by it: members
with different subscriptions skip each other's messages. Members that disagree about locks, about who shares the
messages, or about who has which queue, consume queues twice or not at all. So an edit of one of these is not rolled
out pod by pod: all pods go before the first new one comes (plan.py). Everything else may differ for the length of an
update.

Each pod carries the aspects that it was made with. Only aspects that both sides name are compared: a pod of an older
operator has none, or fewer, and counts as agreeing, so that a new version of the operator recreates nobody's group. For
the same reason the hash of an aspect must not change from one version to the next; a test pins it.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine, TopicSubscription
from rocketfleet.wire.enums import ExpressionType

CLUSTER = "cluster"
SUBSCRIPTIONS = "subscriptions"
HANDOVER = "handover"
ALL = "*"

Shared = Mapping[str, str]

_WORDS = {
    "engine": "engine",
    CLUSTER: "cluster.nameServers",
    SUBSCRIPTIONS: "subscriptions",
    "messageModel": "messageModel",
    "consumeMode": "consumeMode",
    HANDOVER: "rebalance.handover",
    "allocation": "allocation",
}


def shared_settings_of(group: ConsumerGroup) -> dict[str, str]:
    """The aspects as this manifest has them."""
    spec = group.spec
    shared = {
        "engine": spec.engine.value,
        CLUSTER: _hash(sorted(set(spec.cluster.name_servers))),
        SUBSCRIPTIONS: _hash(sorted([each.topic, *wanted_of(each)] for each in spec.subscriptions)),
        "messageModel": spec.message_model.value,
        "consumeMode": spec.consume_mode.value,
    }
    if spec.engine is Engine.WORKER:  # others lock and share out their own way, whatever stands in the manifest
        shared[HANDOVER] = spec.rebalance.handover.value
        shared["allocation"] = _hash(spec.allocation.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    return shared


def differing(one: Shared | None, other: Shared | None) -> tuple[str, ...]:
    """The aspects in which the two differ, by the names that a manifest has for them. What is not known agrees."""
    if one is None or other is None:
        return ()
    return tuple(_WORDS.get(key, key) for key in sorted(one.keys() & other.keys()) if one[key] != other[key])


def elsewhere(one: Shared | None, other: Shared | None) -> bool:
    """Whether the two are at different RocketMQ clusters, for all we know."""
    return _WORDS[CLUSTER] in differing(one, other)


def wanted_of(subscription: TopicSubscription) -> tuple[str, str]:
    """What a subscription asks for, as type and expression, however it was written."""
    return canonical(subscription.type.value, subscription.expression)


def canonical(kind: str, expression: str) -> tuple[str, str]:
    """Two expressions that mean the same are the same: tags have no order, and spaces around them do not count."""
    if kind.upper() != ExpressionType.TAG.wire:  # a manifest's word, or a broker's
        return ExpressionType.SQL92.value, expression.strip()
    tags = sorted({tag.strip() for tag in expression.split("||") if tag.strip()})
    return ExpressionType.TAG.value, " || ".join(tags) or ALL


def encode(shared: Shared) -> str:
    """As an annotation's value."""
    return json.dumps(dict(shared), sort_keys=True, separators=(",", ":"))


def decode(text: object) -> dict[str, str] | None:
    """The annotation's value read; None if there is none that makes sense."""
    try:
        content = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    if not isinstance(content, Mapping) or not all(isinstance(value, str) for value in content.values()):
        return None
    return {str(key): value for key, value in content.items()}


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:10]
