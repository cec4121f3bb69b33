"""The fixtures themselves: what other tests rely on."""

from collections.abc import Callable
from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.java_main import JavaPrograms

from rocketfleet.devbroker.distribution.lock import VERSION


def test_a_topic_and_a_group_are_there_when_a_test_begins(broker: Cluster, topic: str, group: str) -> None:
    assert broker.probe().has_route(broker.name_server, topic, 1)
    assert "consumeFromMinEnable" in broker.admin("getConsumerConfig", "-g", group)


def test_topics_differ_and_take_attributes(broker: Cluster, make_topic: Callable[..., str]) -> None:
    first, second = make_topic(queues=3), make_topic(queues=1, message_type="FIFO")
    assert first != second
    route = broker.admin("topicRoute", "-t", first).replace(" ", "")
    assert '"readQueueNums":3' in route
    assert '"writeQueueNums":3' in route


def test_a_killed_broker_is_back_before_the_next_test(broker: Cluster, topic: str) -> None:
    before = broker.identity_of("broker-a")
    broker.kill()
    assert not before.alive
    broker.settle()  # what happens after each test
    assert broker.running
    assert broker.identity_of("broker-a") != before
    assert broker.probe().has_route(broker.name_server, topic, 1)


def test_a_paused_broker_and_a_killed_name_server_are_back_too(broker: Cluster, topic: str) -> None:
    master = broker.identity_of("broker-a")
    broker.pause()
    broker.kill("name-server")
    broker.settle()
    assert broker.running
    assert broker.identity_of("broker-a") == master
    assert broker.probe().has_route(broker.name_server, topic, 1)


def test_a_restarted_broker_has_its_address_and_topics(broker: Cluster, topic: str) -> None:
    address = broker.broker_address
    broker.restart()
    assert broker.broker_address == address
    assert broker.probe().has_route(broker.name_server, topic, 1)


def test_java_programs_run_on_the_brokers_jars(tmp_path: Path, java: JavaPrograms) -> None:
    source = tmp_path / "Echo.java"
    source.write_text(
        "public class Echo { public static void main(String[] a) throws Exception {"
        " int version = org.apache.rocketmq.common.MQVersion.CURRENT_VERSION;"
        " System.out.print(a[0] + org.apache.rocketmq.common.MQVersion.getVersionDesc(version)"
        " + new String(System.in.readAllBytes())); } }"
    )
    version = "V" + VERSION.replace(".", "_")
    assert java.run(str(source), "this is ", stdin=" indeed") == f"this is {version} indeed"
