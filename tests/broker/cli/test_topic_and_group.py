"""`rocketfleet topic`, `group` and `cluster` on a real broker, against what mqadmin says of the same."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.broker.cli.running import PROGRAM, SECONDS, answer, environment, rocketfleet
from tests.broker.cluster import Cluster
from tests.support.waiting import wait_until

MEMBER = Path(__file__).parents[1] / "facade" / "sample_member.py"


def columns(text: str, first: str) -> list[list[str]]:
    """The lines of one of mqadmin's tables that begin with a word."""
    return [line.split() for line in text.splitlines() if line.startswith(first)]


def send(broker: Cluster, topic: str, count: int) -> None:
    assert (
        answer("send", topic, "--name-server", broker.name_server, "--body", "x", "--count", str(count))["sent"]
        == count
    )


@contextmanager
def member_of(broker: Cluster, group: str, topic: str, home: Path) -> Iterator[None]:
    """A consumer of another make, the native library's, that consumes everything and then waits."""
    command = [sys.executable, str(MEMBER), broker.name_server, group, topic]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "HOME": str(home)}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        try:
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(SECONDS) == 0


def test_a_topic_from_its_creation_to_its_end(broker: Cluster, make_topic: Callable[..., str]) -> None:
    name, ns = f"{make_topic()}-cli", ("--name-server", broker.name_server)
    done = rocketfleet("topic", "create", name, "--queues", "3", *ns)
    assert (done.returncode, done.stdout) == (0, f"topic {name} created on broker-a (3 queues on each broker)\n")
    (row,) = answer("topic", "route", name, *ns)
    assert row == {
        "broker": "broker-a",
        "cluster": "DefaultCluster",
        "read_queues": 3,
        "write_queues": 3,
        "permission": "RW",
        "addresses": [f"0={broker.broker_address}"],
    }
    send(broker, name, 7)
    again = rocketfleet("topic", "create", name, "--queues", "3", *ns)
    assert (again.returncode, "nothing was changed" in again.stdout) == (0, True)
    other = rocketfleet("topic", "create", name, "--queues", "5", *ns)
    assert other.returncode == 1
    assert "is there already with other settings on broker-a (3 queues on each broker): add --update" in other.stderr
    changed = rocketfleet("topic", "create", name, "--queues", "5", "--update", *ns)
    assert changed.stdout == f"topic {name} changed on broker-a (5 queues on each broker)\n"

    told = answer("topic", "status", name, *ns)
    assert (told["topic"], told["messages"], told["permission"], len(told["queues"])) == (name, 7, "RW", 5)
    theirs = columns(broker.admin("topicStatus", "-t", name), "broker-a")
    ours = [
        [row["broker"], str(row["queue"]), str(row["min_offset"]), str(row["max_offset"])] for row in told["queues"]
    ]
    assert ours == [line[:4] for line in theirs]

    listed = rocketfleet("topic", "list", *ns)
    assert re.search(rf"^{name} +NORMAL +1 +5 +5 +RW$", listed.stdout, re.MULTILINE)
    assert "TBW102" not in listed.stdout
    everything = {row["topic"]: row["kind"] for row in answer("topic", "list", "--all", *ns)}
    assert set(everything) >= set(broker.admin("topicList").split())
    assert (everything["TBW102"], everything["DefaultCluster"], everything[name]) == ("system", "system", "topic")

    asked = rocketfleet("topic", "delete", name, *ns, stdin=b"n\n")
    assert (asked.returncode, f"Delete topic {name} with 7 messages?" in asked.stderr) == (1, True)
    gone = rocketfleet("topic", "delete", name, "--yes", *ns)
    assert (gone.returncode, gone.stdout) == (0, f"topic {name} deleted\n")
    for command in (["topic", "status"], ["topic", "route"], ["topic", "delete", "--yes"]):
        missing = rocketfleet(*command, name, *ns)
        assert (missing.returncode, missing.stdout) == (1, "")
        assert missing.stderr.startswith(f"Error: no route to topic {name}")


def test_a_topic_gets_smaller_only_when_no_message_is_lost(broker: Cluster, make_topic: Callable[..., str]) -> None:
    name, ns = f"{make_topic()}-cli", ("--name-server", broker.name_server)
    rocketfleet("topic", "create", name, "--queues", "4", "--order", *ns)
    send(broker, name, 40)
    there = sum(row["messages"] for row in answer("topic", "status", name, *ns)["queues"] if row["queue"] >= 2)
    refused = rocketfleet("topic", "create", name, "--queues", "2", "--update", *ns)
    assert refused.returncode == 1
    assert f"{there} messages in the queues broker-a/2, broker-a/3 could not be read any more" in refused.stderr
    (row,) = answer("topic", "route", name, *ns)
    assert (row["read_queues"], row["write_queues"]) == (4, 4)

    first = rocketfleet("topic", "create", name, "--update", "--write-queues", "2", *ns)
    assert first.stdout == (
        f"topic {name} changed on broker-a (2 queues on each broker to write and 4 to read, ordered)\n"
    )
    send(broker, name, 10)
    again = rocketfleet("topic", "create", name, "--update", "--read-queues", "2", *ns)
    assert (again.returncode, f"{there} messages" in again.stderr) == (1, True), (
        "queues that are only read are counted too"
    )
    second = ("topic", "create", name, "--update", "--read-queues", "2", "--allow-unreachable-messages")
    assert rocketfleet(*second, *ns).stdout == f"topic {name} changed on broker-a (2 queues on each broker, ordered)\n"
    wrong = rocketfleet("topic", "create", name, "--update", "--write-queues", "3", *ns)
    assert (wrong.returncode, "3 queues to write and 2 to read" in wrong.stderr) == (2, True)


def test_a_topic_may_say_what_it_is_for(broker: Cluster, make_topic: Callable[..., str]) -> None:
    name, ns = f"{make_topic()}-fifo", ("--name-server", broker.name_server)
    done = rocketfleet("topic", "create", name, "--type", "fifo", *ns)
    assert done.stdout == f"topic {name} created on broker-a (8 queues on each broker, FIFO)\n"
    assert answer("topic", "status", name, *ns)["type"] == "FIFO"


def test_a_group_from_its_creation_to_its_end(
    broker: Cluster, topic: str, make_group: Callable[..., str], tmp_path: Path
) -> None:
    name, ns = f"{make_group()}-cli", ("--name-server", broker.name_server)
    assert "there is no group" in rocketfleet("group", "status", name, *ns).stderr
    done = rocketfleet("group", "create", name, "--max-retries", "3", *ns)
    assert (done.returncode, done.stdout) == (0, f"group {name} created on broker-a (concurrent, 3 retries)\n")
    assert "nothing was changed" in rocketfleet("group", "create", name, "--max-retries", "3", *ns).stdout
    other = rocketfleet("group", "create", name, "--max-retries", "5", *ns)
    assert (other.returncode, "add --update" in other.stderr) == (1, True)
    changed = rocketfleet("group", "create", name, "--no-broadcast", "--update", *ns)
    assert changed.stdout == f"group {name} changed on broker-a (concurrent, 3 retries, no broadcast)\n"
    (row,) = [row for row in answer("group", "list", *ns) if row["group"] == name]
    assert row == {
        "group": name,
        "brokers": 1,
        "enabled": True,
        "orderly": False,
        "broadcast": False,
        "max_retries": 3,
    }
    assert "CID_RMQ_SYS_TRANS" not in rocketfleet("group", "list", *ns).stdout
    assert "CID_RMQ_SYS_TRANS" in rocketfleet("group", "list", "--all", *ns).stdout

    fresh = answer("group", "status", name, *ns)
    assert (fresh["members"], fresh["queues"], fresh["lag"]) == ([], [], 0)
    assert "no offset of the group is stored yet" in rocketfleet("group", "status", name, *ns).stdout

    send(broker, topic, 40)
    with member_of(broker, name, topic, tmp_path):
        told = wait_until(lambda: consumed(answer("group", "status", name, *ns), topic, 40))
        (member,) = told["members"]
        assert member["language"] == "CPP"
        mine = [row for row in told["queues"] if row["topic"] == topic]
        assert [row["queue"] for row in mine] == list(range(8))
        assert {tuple(row["member"]) for row in mine} == {(member["client_id"],)}
        busy = rocketfleet("group", "delete", name, "--yes", *ns)
        assert busy.returncode == 1
        assert f"has 1 member connected ({member['client_id']})" in busy.stderr

    send(broker, topic, 9)
    idle = answer("group", "status", name, *ns)
    assert (idle["members"], idle["lag"], idle["retry_lag"]) == ([], 9, 0)
    theirs = columns(broker.admin("consumerProgress", "-g", name), topic)
    ours = [
        [row["broker"], str(row["queue"]), str(row["broker_offset"]), str(row["consumer_offset"]), str(row["lag"])]
        for row in idle["queues"]
        if row["topic"] == topic
    ]
    assert ours == [[*line[1:5], line[6] if line[5] == "N/A" else line[5]] for line in theirs]
    table = rocketfleet("group", "status", name, *ns).stdout
    assert re.search(rf"^{topic} +broker-a +0 +\d+ +\d+ +\d+ +\d{{4}}-", table, re.MULTILINE)

    gone = rocketfleet("group", "delete", name, "--remove-offsets", "--yes", *ns)
    assert (gone.returncode, gone.stdout) == (0, f"group {name} deleted, with its offsets\n")
    assert "there is no group" in rocketfleet("group", "delete", name, "--yes", *ns).stderr


def test_retries_and_dead_letters_go_only_by_their_own_flag(broker: Cluster) -> None:
    name, ns = f"cli-leaving-{os.getpid()}", ("--name-server", broker.name_server)
    retry, letters = f"%RETRY%{name}", f"%DLQ%{name}"
    for topic, count in ((retry, 3), (letters, 2)):
        assert rocketfleet("topic", "create", topic, "--queues", "1", *ns).returncode == 0
        send(broker, topic, count)

    def messages(topic: str) -> int | None:
        done = rocketfleet("topic", "status", topic, "-o", "json", *ns)
        return None if done.returncode else int(json.loads(done.stdout)["messages"])

    for flags, said in (
        ((), f"group {name} deleted; its offsets are kept\n"),
        (("--remove-offsets",), f"group {name} deleted, with its offsets\n"),
    ):
        rocketfleet("group", "create", name, *ns)
        gone = rocketfleet("group", "delete", name, "--yes", *flags, *ns)
        assert (gone.returncode, gone.stdout) == (0, said)
        assert f"2 dead letters stay in {letters}; 3 messages that wait for a retry stay in {retry}" in gone.stderr
        assert (messages(retry), messages(letters)) == (3, 2)
    rocketfleet("group", "create", name, *ns)
    asked = rocketfleet("group", "delete", name, "--remove-topics", *ns)
    assert asked.returncode == 1, "nobody said yes"
    assert "3 messages that wait for a retry and 2 dead letters go" in asked.stderr
    assert (messages(retry), messages(letters)) == (3, 2)
    gone = rocketfleet("group", "delete", name, "--remove-topics", "--yes", *ns)
    assert gone.stdout == f"group {name} deleted, with its offsets, its retry and its dead letter topic\n"
    assert "3 messages that wait for a retry and 2 dead letters go" in gone.stderr
    assert (messages(retry), messages(letters)) == (None, None)


def consumed(told: dict[str, Any], topic: str, count: int) -> dict[str, Any] | None:
    """The status, once everything is consumed and every queue has an owner."""
    mine = [row for row in told["queues"] if row["topic"] == topic]
    done = (
        sum(row["consumer_offset"] or 0 for row in mine) == count
        and all(row["member"] for row in mine)
        and told["members"]
    )
    return told if done else None


def test_a_group_name_that_cannot_be_is_one_sentence(broker: Cluster) -> None:
    done = rocketfleet("group", "create", "no such name!", "--name-server", broker.name_server)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "illegal characters" in done.stderr


def test_brokers_with_their_replicas_and_one_that_is_silent(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(brokers=2, slave=True)
    ns = ("--name-server", cluster.name_server)
    rows = answer("cluster", *ns)
    assert [(row["broker"], row["id"], row["role"], row["address"]) for row in rows] == [
        ("broker-a", 0, "master", cluster.address_of("broker-a")),
        ("broker-a", 1, "slave", cluster.address_of("broker-a-slave")),
        ("broker-b", 0, "master", cluster.address_of("broker-b")),
        ("broker-b", 1, "slave", cluster.address_of("broker-b-slave")),
    ]
    assert {(row["version"], row["answers"]) for row in rows} == {("5.5.0", True)}

    created = rocketfleet("topic", "create", "orders", "--queues", "2", *ns)
    assert created.stdout == "topic orders created on broker-a, broker-b (2 queues on each broker)\n"
    assert len(answer("topic", "status", "orders", *ns)["queues"]) == 4

    cluster.pause("broker-b")
    done = rocketfleet("cluster", *ns, "--timeout", "8")
    assert done.returncode == 1
    assert re.search(r"^DefaultCluster +broker-b +0 +master +\S+ +- +- +- +- +no$", done.stdout, re.MULTILINE)
    assert done.stderr.startswith(cluster.address_of("broker-b"))
    part = rocketfleet("topic", "list", *ns, "--timeout", "8")
    assert part.returncode == 1
    assert re.search(r"^orders ", part.stdout, re.MULTILINE)
    assert part.stderr.startswith("broker-b: ")
    cluster.resume("broker-b")


def test_credentials_and_tls_from_everywhere_they_may_come_from(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(acl=True, tls=True)
    admin = cluster.admin_user
    assert admin is not None
    ns = ("--name-server", cluster.name_server)
    authority = ("--ca-file", str(cluster.layout.tls / "ca.pem"))
    keys = {"ROCKETFLEET_ACCESS_KEY": admin.access_key, "ROCKETFLEET_SECRET_KEY": admin.secret_key}

    assert rocketfleet("topic", "create", "orders", *ns, *authority, variables=keys).returncode == 0
    told = answer(
        "send", "orders", "--body", "x", *ns, *authority, "--credentials-file", str(cluster.layout.credentials)
    )
    assert told["sent"] == 1

    forged = {**keys, "ROCKETFLEET_SECRET_KEY": "forged-secret"}
    for refused in (
        rocketfleet("topic", "create", "other", *ns, *authority),
        rocketfleet("topic", "create", "other", *ns, *authority, variables=forged),
        rocketfleet("topic", "list", *ns, "--tls", variables=keys),
    ):
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("Error: ")
        assert refused.stderr.count("\n") == 1
        assert admin.secret_key not in refused.stderr
        assert "forged-secret" not in refused.stderr

    # The directory's own broker needs no option at all.
    (tmp_path / "work" / ".rocketfleet").mkdir(parents=True)
    (tmp_path / "work" / ".rocketfleet" / "broker").symlink_to(cluster.directory)
    rows = answer("topic", "list", directory=tmp_path / "work")
    assert "orders" in [row["topic"] for row in rows]


def test_a_reader_that_goes_away_is_no_error_to_speak_of(broker: Cluster) -> None:
    command = shlex.join([*PROGRAM, "topic", "list", "--all", "--name-server", broker.name_server])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment(),
    )
    assert done.stdout.startswith("TOPIC")
    assert done.stderr == ""
