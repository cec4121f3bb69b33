"""Topics and routes: what we do, Java sees; what Java does, we see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.client.oracle import Oracle, OracleError
from tests.support.waiting import until

from rocketfleet.client import admin
from rocketfleet.client.errors import NoRoute, TopicNotExist
from rocketfleet.client.requests import broker_messages, broker_topics
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from tests.broker.cluster import Cluster

    from rocketfleet.client.client import Client


async def test_a_topic_that_we_create_and_change(client: Client, oracle: Oracle, address: str) -> None:
    name = "client-created-by-us"
    await broker_topics.create_topic(
        client.remoting, address, TopicConfig(name, 3, 5, 6, attributes=broker_topics.added({"message.type": "FIFO"}))
    )
    seen = oracle("topicConfig", address, name)
    assert seen == {"read": 3, "write": 5, "perm": 6, "order": False, "attributes": {"message.type": "FIFO"}}
    await broker_topics.create_topic(client.remoting, address, TopicConfig(name, 4, 4, 4, order=True))
    seen = oracle("topicConfig", address, name)
    assert (seen["read"], seen["write"], seen["perm"], seen["order"]) == (4, 4, 4, True)


async def test_a_topic_that_java_creates(client: Client, oracle: Oracle, address: str) -> None:
    name = "client-created-by-java"
    oracle("createTopic", address, name, 2, 6, 6, "false", "+message.type=DELAY")
    config = await broker_topics.topic_config(client.remoting, address, name)
    assert (config.topic_name, config.read_queue_nums, config.write_queue_nums, config.perm) == (name, 2, 6, 6)
    assert config.attributes == {"message.type": "DELAY"}
    route = await client.route(name)
    assert {(data.broker_name, data.read_queue_nums, data.write_queue_nums) for data in route.queue_datas} == {
        ("broker-a", 2, 6)
    }
    assert len((await client.publish_info(name)).queues) == 6
    assert len(await client.subscribe_queues(name)) == 2
    assert client.master("broker-a") == address


async def test_routes_and_clusters_as_java_reads_them(client: Client, oracle: Oracle, topic: str, address: str) -> None:
    ours, theirs = await client.name_servers.route(topic), oracle("route", topic)
    assert [(d.broker_name, d.read_queue_nums, d.write_queue_nums, d.perm) for d in ours.queue_datas] == [
        (d["brokerName"], d["readQueueNums"], d["writeQueueNums"], d["perm"]) for d in theirs["queueDatas"]
    ]
    info = await client.name_servers.cluster_info()
    assert {
        name: {str(number): where for number, where in data.broker_addrs.items()}
        for name, data in info.broker_addr_table.items()
    } == oracle("cluster")
    assert info.cluster_addr_table == {"DefaultCluster": ("broker-a",)}
    assert await admin.masters(client) == {"broker-a": address}


async def test_lists_of_topics(client: Client, oracle: Oracle, topic: str, address: str) -> None:
    listed = (await client.name_servers.topics()).topic_list
    assert topic in listed
    assert set(listed) == set(oracle("topics"))
    cluster = (await client.name_servers.topics_of_cluster("DefaultCluster")).topic_list
    assert set(cluster) == set(oracle("topicsOfCluster", "DefaultCluster"))
    configs = await broker_topics.all_topic_configs(client.remoting, address)
    assert configs[topic].read_queue_nums == 8
    assert set(configs) == set(oracle("allTopicConfigs", address))
    assert "TBW102" in await broker_topics.system_topics(client.remoting, address)
    assert "DefaultCluster" in (await client.name_servers.system_topics()).topic_list


async def test_deleting(client: Client, oracle: Oracle, topic: str, address: str) -> None:
    outcome = await admin.delete_topic(client, topic, "DefaultCluster")
    assert set(outcome.all_or_raise()) == {"broker-a", client.name_servers.addresses[0]}
    with pytest.raises(OracleError) as gone:
        oracle("topicConfig", address, topic)
    assert gone.value.code == 17
    assert topic not in oracle("topics")
    with pytest.raises(TopicNotExist):
        await broker_topics.topic_config(client.remoting, address, topic)
    with pytest.raises(NoRoute):
        await client.route(topic)
    await broker_topics.delete_topic(client.remoting, address, topic)  # a second time is no error


async def test_a_topic_that_java_deletes(client: Client, oracle: Oracle, topic: str) -> None:
    before = await client.route(topic)
    oracle("deleteTopic", "DefaultCluster", topic)
    with pytest.raises(NoRoute):
        await client.routes.refresh(topic)
    assert await client.route(topic) == before  # the last route is kept: its brokers may only be restarting


async def test_a_static_topic_is_refused(broker: Cluster, client: Client) -> None:
    broker.admin("updateStaticTopic", "-t", "client-static", "-qn", "4", "-b", "broker-a")

    async def refused() -> bool:
        with pytest.raises(NoRoute) as caught:
            await client.route("client-static")
        return "it is a static topic" in str(caught.value)

    await until(refused, within=30)  # until then the name server does not know it


async def test_numbers_of_a_topic(client: Client, oracle: Oracle, topic: str, address: str) -> None:
    for queue_id in (0, 0, 5):
        oracle("send", "client-numbers", topic, queue_id, "body", "tag")
    stats = await broker_topics.topic_stats(client.remoting, address, topic)
    ours = {
        queue: (one.min_offset, one.max_offset, one.last_update_timestamp) for queue, one in stats.offset_table.items()
    }
    assert ours == oracle.rows("topicStats", topic)
    assert {queue.queue_id: values[1] for queue, values in ours.items() if values[1]} == {0: 2, 5: 1}
    everywhere = (await admin.topic_stats(client, topic)).all_or_raise()
    assert everywhere["broker-a"].offset_table.keys() == ours.keys()


async def test_who_consumes_a_topic(client: Client, oracle: Oracle, topic: str, group: str, address: str) -> None:
    oracle("commit", address, group, topic, 0, 0)
    assert await broker_topics.groups_of_topic(client.remoting, address, topic) == (group,)
    assert oracle("groupsOfTopic", topic) == [group]


async def test_a_topic_can_be_created_on_all_masters(client: Client, oracle: Oracle, address: str) -> None:
    name = "client-created-everywhere"
    assert set((await admin.create_topic(client, TopicConfig(name, 1, 1))).all_or_raise()) == {"broker-a"}
    assert oracle("topicConfig", address, name)["read"] == 1


async def test_permission_is_the_clients_to_mind(client: Client, oracle: Oracle, address: str) -> None:
    name = "client-read-only"
    oracle("createTopic", address, name, 1, 1, 4, "false", "")
    assert (await client.publish_info(name)).queues == ()
    where = MessageQueue(name, "broker-a", 0)
    command = broker_messages.send_request(where, b"x", group="client-numbers", born_timestamp=1)
    assert (await broker_messages.send(client.remoting, address, command)).code == 0  # the broker does not look
