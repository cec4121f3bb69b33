"""Where things are: a topic's route, a cluster's brokers, lists of names."""

from dataclasses import dataclass, field
from typing import Final

from rocketfleet.wire.bodies.codec import Body

MASTER_ID: Final = 0

PERM_PRIORITY: Final = 0x8
PERM_READ: Final = 0x4
PERM_WRITE: Final = 0x2
PERM_INHERIT: Final = 0x1


@dataclass(frozen=True, slots=True)
class QueueData(Body):
    """How many queues of a topic a broker has. Queue ids run from 0."""

    broker_name: str = ""
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0

    @property
    def readable(self) -> bool:
        return self.perm & PERM_READ != 0

    @property
    def writable(self) -> bool:
        return self.perm & PERM_WRITE != 0


@dataclass(frozen=True, slots=True)
class BrokerData(Body):
    """The addresses of a broker's replicas, by broker id; 0 is the master."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: dict[int, str] = field(default_factory=dict)
    zone_name: str | None = None
    enable_acting_master: bool = False

    @property
    def master(self) -> str | None:
        return self.broker_addrs.get(MASTER_ID)


@dataclass(frozen=True, slots=True)
class TopicRouteData(Body):
    """The answer to GET_ROUTEINFO_BY_TOPIC."""

    queue_datas: tuple[QueueData, ...] = ()
    broker_datas: tuple[BrokerData, ...] = ()
    order_topic_conf: str | None = None
    filter_server_table: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterInfo(Body):
    """The answer to GET_BROKER_CLUSTER_INFO: brokers by name, and broker names by cluster."""

    broker_addr_table: dict[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerMemberGroup(Body):
    """The replicas of one broker, as the name server knows them."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerMemberGroupResponse(Body):
    """The answer to GET_BROKER_MEMBER_GROUP."""

    broker_member_group: BrokerMemberGroup | None = None


@dataclass(frozen=True, slots=True)
class TopicList(Body):
    """Names of topics: the answer to GET_ALL_TOPIC_LIST_FROM_NAMESERVER, GET_TOPICS_BY_CLUSTER and their like."""

    topic_list: tuple[str, ...] = ()
    broker_addr: str | None = None


@dataclass(frozen=True, slots=True)
class GroupList(Body):
    """Names of groups: the answer to QUERY_TOPIC_CONSUME_BY_WHO."""

    group_list: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KVTable(Body):
    """Names and values: the answer to GET_BROKER_RUNTIME_INFO and GET_KVLIST_BY_NAMESPACE."""

    table: dict[str, str] = field(default_factory=dict)
