"""Rules about names: the object's, the group's, the name servers'."""

from collections.abc import Callable

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.rule import ChangeRule, Rule
from rocketfleet.api.rules.form import form, quoted
from rocketfleet.wire.topics import DEAD_LETTER_PREFIX

LONGEST_OBJECT_NAME = 58  # a pod's name, `<object>-<ordinal>`, is a host name and a label: 63 characters
RESERVED_GROUPS = ("DEFAULT_CONSUMER", "TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP")
NAME = "[%|a-zA-Z0-9_-]+"
PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
ADDRESS = f"([a-zA-Z0-9._-]+|\\[[0-9a-fA-F:.]+\\]):{PORT}"


def _object(name: str, message: str, cel: str, holds: Callable[[ConsumerGroup], bool], field: str) -> Rule:
    return Rule(name, "", message, cel, holds, field)


_GROUP_NAME = "(has({0}.spec.groupName) ? {0}.spec.groupName : {0}.metadata.name)"

CHANGES: tuple[ChangeRule, ...] = (
    ChangeRule(
        "group-name-stays",
        "",
        "the group's name never changes, for its offsets are stored under it: create another ConsumerGroup "
        "(left out, groupName is the object's name)",
        f"{_GROUP_NAME.format('self')} == {_GROUP_NAME.format('oldSelf')}",
        lambda group, old: bool(group.group_name == old.group_name),
        ".spec.groupName",
    ),
)

OBJECT: tuple[Rule, ...] = (
    _object(
        "object-name-short-enough",
        f"the name is longer than {LONGEST_OBJECT_NAME} characters, and the pods' names are made from it: choose a "
        "shorter one, and give the long one as spec.groupName",
        f"size(self.metadata.name) <= {LONGEST_OBJECT_NAME}",
        lambda group: len(group.metadata.name) <= LONGEST_OBJECT_NAME,
        ".metadata",
    ),
    _object(
        "object-name-is-a-group-name",
        "the object's name has a dot in it, which a group's name can't have: give spec.groupName",
        "has(self.spec.groupName) || !self.metadata.name.contains('.')",
        lambda group: group.spec.group_name is not None or "." not in group.metadata.name,
        ".spec.groupName",
    ),
    _object(
        "own-dead-letters-not-subscribed",
        "the group subscribes to its own dead letters, where they would end up again: let another group consume them",
        f"!(('%DLQ%' + {_GROUP_NAME.format('self')}) in self.spec.subscriptions.map(s, s.topic))",
        lambda group: DEAD_LETTER_PREFIX + group.group_name not in [s.topic for s in group.spec.subscriptions],
        ".spec.subscriptions",
    ),
)

NAMES: tuple[Rule, ...] = (
    form(
        "group-name-form",
        "spec.groupName",
        NAME,
        "a group's name has letters, digits, '_', '-', '%' and '|' only",
    ),
    Rule(
        "group-name-not-reserved",
        "spec.groupName",
        "this name belongs to RocketMQ itself: choose another",
        f"!(self in [{', '.join(quoted(name) for name in RESERVED_GROUPS)}]) && !self.startsWith('CID_RMQ_SYS_')",
        lambda name: name not in RESERVED_GROUPS and not name.startswith("CID_RMQ_SYS_"),
    ),
    form(
        "name-server-form",
        "spec.cluster.nameServers[]",
        ADDRESS,
        "write host:port, as rocketmq:9876, with one address in each item and no scheme",
    ),
)
