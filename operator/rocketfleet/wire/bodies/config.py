"""Topics and groups as brokers configure them."""

from dataclasses import dataclass, field
from typing import Final

from rocketfleet.wire.bodies.codec import Body
from rocketfleet.wire.bodies.route import MASTER_ID, PERM_READ, PERM_WRITE
from rocketfleet.wire.bodies.stats import DataVersion

DEFAULT_QUEUES: Final = 16


@dataclass(frozen=True, slots=True)
class TopicConfig(Body):
    """A topic on one broker."""

    topic_name: str = ""
    read_queue_nums: int = DEFAULT_QUEUES
    write_queue_nums: int = DEFAULT_QUEUES
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicConfigs(Body):
    """The answer to GET_ALL_TOPIC_CONFIG (Java: TopicConfigSerializeWrapper)."""

    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion | None = None


@dataclass(frozen=True, slots=True)
class TopicConfigList(Body):
    """The body of UPDATE_AND_CREATE_TOPIC_LIST (Java: CreateTopicListRequestBody)."""

    topic_config_list: tuple[TopicConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class ExponentialRetryPolicy(Body):
    """Retry after `initial` milliseconds, each time `multiplier` times as long, up to `max` milliseconds."""

    initial: int = 5_000
    max: int = 7_200_000
    multiplier: int = 2


@dataclass(frozen=True, slots=True)
class CustomizedRetryPolicy(Body):
    """Retry after these delays, in milliseconds; the last repeats."""

    next: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupRetryPolicy(Body):
    """When a message that failed comes back. type: CUSTOMIZED or EXPONENTIAL."""

    type: str = "CUSTOMIZED"
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None


@dataclass(frozen=True, slots=True)
class SimpleSubscription(Body):
    """A subscription that a group's configuration fixes (Java: SimpleSubscriptionData)."""

    topic: str = ""
    expression_type: str = ""
    expression: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class SubscriptionGroupConfig(Body):
    """A consumer group on one broker: the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP."""

    group_name: str = ""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: GroupRetryPolicy = GroupRetryPolicy()
    broker_id: int = MASTER_ID
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: tuple[SimpleSubscription, ...] | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubscriptionGroups(Body):
    """The answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG (Java: SubscriptionGroupWrapper)."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    forbidden_table: dict[str, dict[str, int]] = field(default_factory=dict)
    data_version: DataVersion | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionGroupList(Body):
    """The body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    group_config_list: tuple[SubscriptionGroupConfig, ...] = ()
