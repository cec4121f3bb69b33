"""The name servers: any of them can answer, so one is kept for as long as it does, and the next is tried when it fails.

Name servers do not talk to each other; brokers register with all of them. So which one answers does not matter, and
which one a client begins with is drawn by lot, to spread the load. A host name is resolved at each connection attempt,
and all its addresses are tried, so the headless service of a cluster works as one entry.
"""

from __future__ import annotations

import random as random_numbers
from typing import TYPE_CHECKING

from rocketfleet.client.errors import (
    ConnectError,
    ConnectionLost,
    NoNameServer,
    NoRoute,
    ProtocolError,
    RequestTimeout,
    RocketMQError,
    TopicNotExist,
    response_error,
)
from rocketfleet.client.requests.calls import Answer
from rocketfleet.wire import fastjson
from rocketfleet.wire.bodies import MASTER_ID, ClusterInfo, DataVersion, TopicList, TopicRouteData
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocketfleet.client.requests.calls import Caller

# What the next name server may do better: it is not reachable, does not answer, talks nonsense, or is only starting.
_UNREACHABLE = (ConnectError, ConnectionLost, RequestTimeout, ProtocolError)
_NOT_READY = (ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY)


class NameServers:
    """The list, and which of them is used now."""

    def __init__(
        self, caller: Caller, addresses: Sequence[str], *, random: Callable[[], float] = random_numbers.random
    ) -> None:
        if not addresses:
            raise ValueError("at least one name server is needed")
        self._caller = caller
        self.addresses = tuple(addresses)
        self._current = int(random() * len(self.addresses))

    @property
    def current(self) -> str:
        """The address that is asked first."""
        return self.addresses[self._current]

    async def ask(self, command: Command, timeout: float | None = None) -> Answer:
        """Ask the current name server, and the others in turn if it fails. The time-out is that of each attempt."""
        errors: dict[str, RocketMQError] = {}
        start = self._current
        for step in range(len(self.addresses)):
            index = (start + step) % len(self.addresses)
            address = self.addresses[index]
            try:
                response = await self._caller.call(address, command, timeout)
            except _UNREACHABLE as error:
                errors[address] = error
                continue
            if response.code in _NOT_READY:
                errors[address] = response_error(response.code, response.remark, address, command.code)
                continue
            self._current = index
            if response.code != ResponseCode.SUCCESS:
                raise response_error(response.code, response.remark, address, command.code)
            return Answer(response, address, command.code)
        self._current = (start + 1) % len(self.addresses)
        if len(errors) == 1:
            raise next(iter(errors.values()))
        raise NoNameServer(errors)

    async def route(self, topic: str, timeout: float | None = None) -> TopicRouteData:
        """The route of a topic; NoRoute if the name server knows no broker that has it, or it is a static one.

        The queues of a static topic are numbered across brokers and move between them. To treat it as an ordinary topic
        would read and commit the wrong queues, so it is refused.
        """
        command = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic, "acceptStandardJsonOnly": True})
        try:
            answer = await self.ask(command, timeout)
        except TopicNotExist as error:
            reason = f"the name server {error.peer} knows no broker that has it; create it, or check the name"
            raise NoRoute(topic, reason) from error
        content = answer.body(fastjson.loads)
        if isinstance(content, dict) and content.get("topicQueueMappingByBroker"):
            raise NoRoute(topic, "it is a static topic (updateStaticTopic), and this client knows only ordinary ones")
        return answer.body(lambda _: TopicRouteData.from_json(content))

    async def cluster_info(self, timeout: float | None = None) -> ClusterInfo:
        """All clusters, their brokers and the addresses of these."""
        answer = await self.ask(request(RequestCode.GET_BROKER_CLUSTER_INFO), timeout)
        return answer.body(ClusterInfo.decode)

    async def topics(self, timeout: float | None = None) -> TopicList:
        """The names of all topics, those of the system too."""
        answer = await self.ask(request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER), timeout)
        return answer.body(TopicList.decode)

    async def topics_of_cluster(self, cluster: str, timeout: float | None = None) -> TopicList:
        """The names of the topics that the brokers of a cluster have."""
        answer = await self.ask(request(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": cluster}), timeout)
        return answer.body(TopicList.decode)

    async def system_topics(self, timeout: float | None = None) -> TopicList:
        """The names that the name server counts as the system's: clusters and brokers have a topic each."""
        answer = await self.ask(request(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS), timeout)
        return answer.body(TopicList.decode)

    async def topics_version(
        self, cluster: str, broker: str, address: str, timeout: float | None = None
    ) -> DataVersion | None:
        """The version of the topics with which a master has registered; None if none has from this address.

        Under RocketMQ's controller `state_version` is the number of its election, and to be elected is a change.
        """
        command = request(
            RequestCode.QUERY_DATA_VERSION,
            {"brokerName": broker, "brokerAddr": address, "clusterName": cluster, "brokerId": MASTER_ID},
            # A version that nobody has: by asking with the right one, we would pass for the broker and keep it alive.
            DataVersion(state_version=-1).encode(),
        )
        answer = await self.ask(command, timeout)
        return answer.body(DataVersion.decode) if answer.response.body else None

    async def delete_topic(
        self, address: str, topic: str, cluster: str | None = None, timeout: float | None = None
    ) -> None:
        """Make one name server forget a topic. They share nothing, so all must be told: see `admin.delete_topic`."""
        fields = {"topic": topic, "clusterName": cluster}
        command = request(RequestCode.DELETE_TOPIC_IN_NAMESRV, fields)
        response = await self._caller.call(address, command, timeout)
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark, address, command.code)
