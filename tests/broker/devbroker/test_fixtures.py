"""The fixtures themselves: what other tests rely on."""

from collections.abc import Callable
from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.java_main import JavaPrograms


def test_a_topic_and_a_group_are_there_when_a_test_begins(broker: Cluster, topic: str, group: str) -> None:
    assert topic in broker.admin("topicList")
    assert broker.probe().has_route(broker.name_server, topic, 1)
    config = broker.admin("getConsumerConfig", "-g", group)
    assert "consumeFromMinEnable" in config


def test_topics_differ_and_take_attributes(broker: Cluster, make_topic: Callable[..., str]) -> None:
    first, second = make_topic(queues=3), make_topic(queues=1, message_type="FIFO")
    assert first != second
    route = broker.admin("topicRoute", "-t", first)
    assert '"writeQueueNums":3' in route.replace(" ", "")


def test_a_disturbed_broker_comes_back(broker: Cluster, topic: str) -> None:
    before = broker.identity_of("broker-a")
    broker.kill()
    assert not before.alive
    broker.settle()
    broker.pause()
    broker.resume()
    broker.restart()
    assert broker.running
    assert broker.probe().has_route(broker.name_server, topic, 1)


def test_java_programs_run_on_the_brokers_jars(tmp_path: Path, java: JavaPrograms) -> None:
    source = tmp_path / "Echo.java"
    source.write_text(
        "public class Echo { public static void main(String[] a) throws Exception {"
        " System.out.print(a[0] + org.apache.rocketmq.common.MQVersion.CURRENT_VERSION"
        " + new String(System.in.readAllBytes())); } }"
    )
    assert java.run(str(source), "version ", stdin=" ok") == "version 513 ok"
