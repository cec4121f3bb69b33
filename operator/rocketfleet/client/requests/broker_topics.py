"""Topics at one broker: their configuration and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rocketfleet.client.requests.broker_messages import AUTO_CREATE_TOPIC
from rocketfleet.client.requests.calls import Caller, all_pages, ask
from rocketfleet.wire import offset_tables
from rocketfleet.wire.bodies import GroupList, TopicConfig, TopicConfigs, TopicList, TopicStatsTable
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocketfleet.wire.bodies import DataVersion
    from rocketfleet.wire.command import Command

_PAGE: Final = 2000


async def create_topic(caller: Caller, address: str, topic: TopicConfig, *, timeout: float | None = None) -> None:
    """Create a topic, or change the one that is there.

    Attributes are changes: `+name=value` sets one and `-name` removes one; `added` writes them from plain names.
    """
    await ask(
        caller,
        address,
        request(
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            {
                "topic": topic.topic_name,
                "defaultTopic": AUTO_CREATE_TOPIC,
                "readQueueNums": topic.read_queue_nums,
                "writeQueueNums": topic.write_queue_nums,
                "perm": topic.perm,
                "topicFilterType": topic.topic_filter_type,
                "topicSysFlag": topic.topic_sys_flag,
                "order": topic.order,
                "attributes": attribute_text(topic.attributes),
            },
        ),
        timeout,
    )


def added(attributes: Mapping[str, str]) -> dict[str, str]:
    """Attributes as changes that set them all."""
    return {f"+{name}": value for name, value in attributes.items()}


def attribute_text(changes: Mapping[str, str]) -> str:
    """Changes as the broker reads them: `+name=value,-name`. It has no way to quote, so its separators are refused."""
    for name, value in changes.items():
        if not name.startswith(("+", "-")):
            raise ValueError(f"attribute {name!r} must begin with + to be set or - to be removed")
        if any(separator in text for text in (name, value) for separator in ",="):
            raise ValueError(f"attribute {name!r} cannot carry a comma or an equals sign: {value!r}")
    return ",".join(f"{name}={value}" if value else name for name, value in changes.items())


async def delete_topic(caller: Caller, address: str, topic: str, *, timeout: float | None = None) -> None:
    """Delete a topic and its messages at a broker. One that is not there is no error."""
    await ask(caller, address, request(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic}), timeout)


async def topic_config(caller: Caller, address: str, topic: str, *, timeout: float | None = None) -> TopicConfig:
    """A topic's configuration; TopicNotExist if the broker has no such topic."""
    answer = await ask(caller, address, request(RequestCode.GET_TOPIC_CONFIG, {"topic": topic, "lo": True}), timeout)
    return answer.body(TopicConfig.decode)


async def all_topic_configs(caller: Caller, address: str, *, timeout: float | None = None) -> dict[str, TopicConfig]:
    """All topics of a broker, read page by page."""

    def page(start: int, version: str) -> Command:
        return request(
            RequestCode.GET_ALL_TOPIC_CONFIG, {"topicSeq": start, "maxTopicNum": _PAGE, "dataVersion": version}
        )

    def read(body: bytes) -> tuple[dict[str, TopicConfig], DataVersion | None]:
        found = TopicConfigs.decode(body)
        return found.topic_config_table, found.data_version

    return await all_pages(caller, address, page, read, "totalTopicNum", timeout)


async def topic_stats(caller: Caller, address: str, topic: str, *, timeout: float | None = None) -> TopicStatsTable:
    """Where each of a topic's queues at a broker begins and ends, and when it was last written."""
    answer = await ask(caller, address, request(RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic}), timeout)
    return answer.body(TopicStatsTable.decode)


async def queue_ends(
    caller: Caller, address: str, topic: str, *, timeout: float | None = None
) -> dict[int, tuple[int, int]]:
    """Only where each queue begins and ends, by queue id: the same call, read many times as fast."""
    answer = await ask(caller, address, request(RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic}), timeout)
    return answer.body(offset_tables.queue_ends)


async def groups_of_topic(caller: Caller, address: str, topic: str, *, timeout: float | None = None) -> tuple[str, ...]:
    """The groups that consume a topic: those with members online or with an offset stored."""
    answer = await ask(caller, address, request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": topic}), timeout)
    return answer.body(GroupList.decode).group_list


async def system_topics(caller: Caller, address: str, *, timeout: float | None = None) -> tuple[str, ...]:
    """The topics that a broker keeps for itself."""
    answer = await ask(caller, address, request(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER), timeout)
    return answer.body(TopicList.decode).topic_list
