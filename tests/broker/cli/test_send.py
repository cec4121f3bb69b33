"""`rocketfleet send` on a real broker: what arrives, what is said, and what the exit code is."""

import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.cli.running import PROGRAM, SECONDS, answer, environment, rocketfleet
from tests.broker.cluster import Cluster
from tests.broker.facade.reading import messages_of
from tests.support.waiting import wait_until


def bodies(broker: Cluster, topic: str) -> list[bytes]:
    return [message.body for message in messages_of(broker.name_server, topic)]


def test_every_line_is_a_message(broker: Cluster, topic: str) -> None:
    lines = [f"line {i}" for i in range(500)] + ["grün und 订单", "no end"]
    done = rocketfleet("send", topic, "--name-server", broker.name_server, stdin="\n".join(lines).encode())
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"sent 502 messages to {topic} in [\d.]+ s, [\d,]+ per second\n", done.stdout)
    assert done.stderr == ""
    assert sorted(bodies(broker, topic)) == sorted(line.encode() for line in lines)


def test_lines_from_a_file_on_standard_input(broker: Cluster, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\r\n\r\ntwo\n\nthree\n")
    with file.open("rb") as stdin:
        done = subprocess.run(
            [*PROGRAM, "send", topic, "--name-server", broker.name_server, "--count", "4"],
            stdin=stdin,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env=environment(),
        )
    assert done.returncode == 0
    assert b"sent 2 messages" in done.stdout
    assert b"2 empty lines left out" in done.stdout
    assert sorted(bodies(broker, topic)) == [b"one", b"two"]


def test_nothing_on_standard_input_is_nothing_sent(broker: Cluster, topic: str) -> None:
    assert answer("send", topic, "--name-server", broker.name_server) == {
        "topic": topic,
        "sent": 0,
        "failed": 0,
        "empty": 0,
        "seconds": pytest.approx(0, abs=60),
        "rate": 0,
    }


def test_keys_tag_and_properties_are_on_every_message(broker: Cluster, topic: str) -> None:
    told = answer(
        *(
            "send",
            topic,
            "--name-server",
            broker.name_server,
            "--body",
            "x",
            "--key",
            "a",
            "--key",
            "b",
            "--tag",
            "paid",
        ),
        *("--property", "shop=köln", "--property", "formula=a=b"),
    )
    (message,) = messages_of(broker.name_server, topic)
    assert (message.keys, message.tags) == (("a", "b"), "paid")
    assert (message.properties["shop"], message.properties["formula"]) == ("köln", "a=b")
    assert told["message"] == {
        "id": message.msg_id,
        "broker": message.broker,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "status": "SEND_OK",
    }


def test_a_file_is_one_message_whatever_is_in_it(broker: Cluster, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "content"
    file.write_bytes(bytes(range(256)) * 40)
    done = rocketfleet("send", topic, "--name-server", broker.name_server, "--file", str(file))
    assert done.returncode == 0, done.stderr
    assert "sent 1 message to" in done.stdout
    assert bodies(broker, topic) == [bytes(range(256)) * 40]


def test_a_body_so_many_times(broker: Cluster, topic: str) -> None:
    assert answer("send", topic, "--name-server", broker.name_server, "--body", "ping", "--count", "30")["sent"] == 30
    assert bodies(broker, topic) == [b"ping"] * 30


@pytest.mark.parametrize("batch", [[], ["--batch", "7"]], ids=["singly", "in batches"])
def test_a_shard_is_one_queue_in_order(broker: Cluster, topic: str, batch: list[str]) -> None:
    lines = [b"%d" % i for i in range(100)]
    done = rocketfleet(
        "send", topic, "--name-server", broker.name_server, "--shard", "customer-7", *batch, stdin=b"\n".join(lines)
    )
    assert done.returncode == 0, done.stderr
    received = messages_of(broker.name_server, topic)
    assert len({message.queue_id for message in received}) == 1
    assert [message.body for message in received] == lines
    assert {message.properties["__SHARDINGKEY"] for message in received} == {"customer-7"}


def test_batches_of_lines(broker: Cluster, topic: str) -> None:
    lines = [b"%d" % i for i in range(1000)] + [b"x" * 3_000_000, b"y" * 3_000_000]
    done = rocketfleet("send", topic, "--name-server", broker.name_server, "--batch", "64", stdin=b"\n".join(lines))
    assert done.returncode == 0, done.stderr
    assert sorted(bodies(broker, topic)) == sorted(lines)


def test_a_delay_is_the_brokers_to_keep(broker: Cluster, topic: str) -> None:
    done = rocketfleet("send", topic, "--name-server", broker.name_server, "--body", "later", "--delay-level", "1")
    assert done.returncode == 0, done.stderr
    (message,) = wait_until(lambda: messages_of(broker.name_server, topic))
    assert message.body == b"later"
    assert message.store_timestamp - message.born_timestamp >= 900


def test_a_rate_is_kept(broker: Cluster, topic: str) -> None:
    told = answer("send", topic, "--name-server", broker.name_server, "--body", "x", "--count", "21", "--rate", "20")
    assert told["sent"] == 21
    assert told["seconds"] >= 0.999  # the twenty-first goes a second after the first


def test_a_line_that_is_too_long_is_named_and_the_rest_goes_on(broker: Cluster, topic: str) -> None:
    stdin = b"first\n" + b"x" * (5 << 20) + b"\nlast\n"
    done = rocketfleet("send", topic, "--name-server", broker.name_server, stdin=stdin)
    assert done.returncode == 1
    assert done.stderr == "line 2: longer than a message may be (4,194,304 bytes)\n"
    assert "sent 2 messages" in done.stdout
    assert "1 failed" in done.stdout
    assert sorted(bodies(broker, topic)) == [b"first", b"last"]


def test_failures_are_said_counted_and_make_the_exit_code(broker: Cluster, topic: str) -> None:
    broker.pause()
    done = rocketfleet("send", topic, "--name-server", broker.name_server, "--timeout", "1", stdin=b"one\ntwo\nthree\n")
    assert done.returncode == 1
    assert re.search(rf"sent 0 messages to {topic} in [\d.]+ s; 3 failed", done.stdout)
    assert sorted(line.partition(":")[0] for line in done.stderr.splitlines()) == ["line 1", "line 2", "line 3"]
    assert "Traceback" not in done.stderr


def test_a_topic_that_is_not_there_is_one_sentence(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(auto_create_topics=False)
    done = rocketfleet("send", "absent", "--name-server", cluster.name_server, stdin=b"one\ntwo\n")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: no route to topic absent")
    assert done.stderr.count("\n") == 1


def test_a_topic_that_the_broker_creates_is_said_once(broker: Cluster, topic: str) -> None:
    mistyped = f"{topic}-typo"
    ns = ("--name-server", broker.name_server)
    refused = rocketfleet("send", mistyped, "--no-create", *ns, stdin=b"one\n")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"Error: no route to topic {mistyped}: ")
    first = rocketfleet("send", mistyped, *ns, stdin=b"one\ntwo\nthree\n")
    assert (first.returncode, first.stderr) == (
        0,
        f"topic {mistyped} did not exist: broker-a has created it with 4 queues\n",
    )
    wait_until(lambda: rocketfleet("topic", "status", mistyped, *ns).returncode == 0)  # the name server has heard of it
    again = rocketfleet("send", mistyped, "--no-create", *ns, stdin=b"four\n")
    assert (again.returncode, again.stderr) == (0, "")
    assert sorted(bodies(broker, mistyped)) == [b"four", b"one", b"three", b"two"]


def test_a_refusal_for_missing_rights_is_not_tried_again(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(acl=True)
    ns = ("--name-server", cluster.name_server)
    created = rocketfleet("topic", "create", "orders", *ns, "--credentials-file", str(cluster.layout.credentials))
    assert created.returncode == 0, created.stderr
    refused = rocketfleet("send", "orders", "--body", "x", *ns)
    assert refused.returncode == 1
    assert refused.stderr.startswith("message 1: ")
    assert "NO_PERMISSION" in refused.stderr
    assert "tried" not in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_in_good_order(broker: Cluster, topic: str, number: signal.Signals) -> None:
    command = [
        *PROGRAM,
        "send",
        topic,
        "--name-server",
        broker.name_server,
        "--body",
        "x",
        "--count",
        "1000000",
        "--rate",
        "200",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        wait_until(lambda: len(bodies(broker, topic)) > 20)
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number
    said = re.match(rf"sent ([\d,]+) messages to {topic}", out.decode())
    assert said, err.decode()
    assert err == b""
    assert len(bodies(broker, topic)) == int(said[1].replace(",", ""))


def test_a_signal_ends_the_wait_for_a_line(broker: Cluster, topic: str) -> None:
    command = [*PROGRAM, "send", topic, "--name-server", broker.name_server]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\nunfinished")
        process.stdin.flush()
        wait_until(lambda: len(bodies(broker, topic)) == 2)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        out = process.stdout.read()
        assert process.wait(SECONDS) == 130
    assert out.startswith(b"sent 2 messages")
    assert sorted(bodies(broker, topic)) == [b"one", b"two"]


def test_a_terminal_sees_how_far_things_are(broker: Cluster, topic: str) -> None:
    controller, terminal = pty.openpty()
    try:
        command = [
            *PROGRAM,
            "send",
            topic,
            "--name-server",
            broker.name_server,
            "--body",
            "x",
            "--count",
            "40",
            "--rate",
            "100",
        ]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=terminal, timeout=SECONDS, check=False, env=environment()
        )
        drawn = os.read(controller, 1 << 16).decode()
    finally:
        os.close(terminal)
        os.close(controller)
    assert done.returncode == 0
    assert done.stdout.startswith(b"sent 40 messages")
    assert re.search(r"\[#+-+\] +\d+%  \d+ sent", drawn)
    assert drawn.endswith("\r\x1b[K")  # nothing is left of it
