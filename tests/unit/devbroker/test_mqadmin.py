"""mqadmin: its command line, and whether it failed, which it does not say itself."""

import io
import sys
from pathlib import Path

import pytest

from rocketfleet.devbroker import mqadmin
from rocketfleet.devbroker.setup.config import FleetSpec, Layout


def argv(*arguments: str, spec: FleetSpec | None = None) -> list[str]:
    return mqadmin.mqadmin_argv(
        spec or FleetSpec(),
        Layout(Path("/fleet")),
        arguments,
        java="/bin/java",
        classpath="/jars/*",
        name_server="127.0.0.1:9876",
    )


def test_the_name_server_is_filled_in() -> None:
    assert argv("clusterList", "-m")[-5:] == [mqadmin.MAIN_CLASS, "clusterList", "-m", "-n", "127.0.0.1:9876"]


def test_a_name_server_that_was_given_stays() -> None:
    assert argv("clusterList", "-n", "other:1")[-3:] == ["clusterList", "-n", "other:1"]


@pytest.mark.parametrize("arguments", [(), ("help", "topicList"), ("topicList", "-h")])
def test_help_needs_no_name_server(arguments: tuple[str, ...]) -> None:
    assert "-n" not in argv(*arguments)


def test_it_speaks_tls_to_a_fleet_that_does() -> None:
    assert "-Dtls.enable=true" in argv("clusterList", spec=FleetSpec(tls=True))


def test_its_log_stays_in_the_fleets_directory() -> None:
    assert "-Duser.home=/fleet/home/mqadmin" in argv("clusterList")


@pytest.mark.parametrize(
    "output",
    [
        "The sub command nonsense not exist.\n",
        "org.apache.rocketmq.tools.command.SubCommandException: TopicRoute failed\n\tat x.y.Z(Z.java:1)\n",
        "ok so far\n\tat org.apache.rocketmq.X.main(X.java:1)\n",
        "java.lang.IllegalStateException: no\n",
    ],
)
def test_failures_are_seen(output: str) -> None:
    assert mqadmin.has_failed(output)


@pytest.mark.parametrize(
    "output", ["", "create topic to 127.0.0.1:10911 success.\n", "Exception-Topic\nErrors at noon (daily)\n"]
)
def test_successes_are_not_called_failures(output: str) -> None:
    assert not mqadmin.has_failed(output)


def test_short_forms() -> None:
    assert mqadmin.topic_create("orders", 4, ["-o", "true"]) == (
        ["updateTopic", "-c", "DefaultCluster", "-t", "orders", "-r", "4", "-w", "4", "-o", "true"]
    )
    assert mqadmin.topic_delete("orders", []) == ["deleteTopic", "-c", "DefaultCluster", "-t", "orders"]
    assert mqadmin.group_create("billing", []) == (
        ["updateSubGroup", "-c", "DefaultCluster", "-g", "billing", "-m", "true", "-d", "true"]
    )
    assert mqadmin.group_create("billing", ["-d", "false"]) == (
        ["updateSubGroup", "-c", "DefaultCluster", "-g", "billing", "-m", "true", "-d", "false"]
    )
    assert mqadmin.group_delete("billing", ["-r", "true"]) == (
        ["deleteSubGroup", "-c", "DefaultCluster", "-g", "billing", "-r", "true"]
    )


@pytest.mark.parametrize(
    ("program", "out", "err", "succeeded"),
    [
        ("print('hello')", "hello\n", "", True),
        ("import sys; print('The sub command x not exist.'); print('noise', file=sys.stderr)", None, "noise\n", False),
        ("import sys; sys.exit(4)", "", "", False),
    ],
)
def test_what_it_prints_is_passed_on(program: str, out: str | None, err: str, succeeded: bool) -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    assert mqadmin.relay([sys.executable, "-c", program], {}, stdout, stderr) is succeeded
    assert out is None or stdout.getvalue() == out
    assert stderr.getvalue() == err
