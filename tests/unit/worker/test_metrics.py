"""What Prometheus reads."""

from dataclasses import fields

from prometheus_client.parser import text_string_to_metric_families

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.control.messages import QueueReport
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.durations import Durations
from rocketfleet.worker.metrics import LONGEST_LABEL, MOST_QUEUES, MemberReading, render
from rocketfleet.worker.processes.merged_metrics import merge

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def view(number: int, *, topic: str = "t", offset: int | None = 5, lease: float | None = 9.5) -> QueueReport:
    return QueueReport(MessageQueue(topic, "b", number), "me", "Owned", offset, offset, lease, messages=3, size=300)


def observed(queues: list[QueueReport], client_id: str = "me") -> MemberReading:
    durations = Durations()
    durations.note(0.002)
    return MemberReading(
        "g",
        client_id,
        True,
        2,
        0.1,
        ConsumerCounters(**{f.name: i for i, f in enumerate(fields(ConsumerCounters))}),
        durations,
        queues,
    )


def samples(text: bytes) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_queues_counters_and_durations_are_there() -> None:
    found = samples(render(observed([view(0), view(1, offset=None, lease=None)])))
    queue = frozenset({("group", "g"), ("topic", "t"), ("broker", "b"), ("queue", "0")})
    assert found["rocketfleet_worker_queue_offset", queue] == 5.0
    assert found["rocketfleet_worker_queue_messages", queue] == 3.0
    assert found["rocketfleet_worker_queue_bytes", queue] == 300.0
    assert found["rocketfleet_worker_queue_lease_seconds", queue] == 9.5
    unread = frozenset({("group", "g"), ("topic", "t"), ("broker", "b"), ("queue", "1")})
    assert ("rocketfleet_worker_queue_offset", unread) not in found
    assert ("rocketfleet_worker_queue_lease_seconds", unread) not in found
    group = frozenset({("group", "g")})
    assert found["rocketfleet_worker_queues", group | {("state", "Owned")}] == 2.0
    assert found["rocketfleet_worker_messages_handled_total", group] == float(
        [f.name for f in fields(ConsumerCounters)].index("handled")
    )
    assert found["rocketfleet_worker_handler_seconds_count", group] == 1.0
    assert found["rocketfleet_worker_handler_seconds_bucket", group | {("le", "0.0025")}] == 1.0
    assert found["rocketfleet_worker_handler_seconds_bucket", group | {("le", "0.001")}] == 0.0
    assert sum(name.endswith("_total") and name.startswith("rocketfleet_") for name, _ in found) == len(
        fields(ConsumerCounters)
    )
    assert any(name == "process_resident_memory_bytes" for name, _ in found)


def test_no_owned_queue_is_a_zero_not_an_absence() -> None:
    assert (
        samples(render(observed([])))["rocketfleet_worker_queues", frozenset({("group", "g"), ("state", "Owned")})]
        == 0.0
    )


def test_labels_and_their_number_are_bounded() -> None:
    many = [view(number, topic="x" * 1000) for number in range(MOST_QUEUES + 7)]
    found = samples(render(observed(many, client_id="y" * 1000)))
    assert sum(name == "rocketfleet_worker_queue_messages" for name, _ in found) == MOST_QUEUES
    assert found["rocketfleet_worker_queues_not_shown", frozenset({("group", "g")})] == 7.0
    assert max(len(value) for _, labels in found for _, value in labels) == LONGEST_LABEL


def test_several_processes_in_one_text() -> None:
    texts = {0: render(observed([view(0)])).decode(), 2: render(observed([view(1)])).decode()}
    text = merge(texts, {0: 0, 1: 5, 2: 1})
    found = samples(text)
    for process, queue in (("0", "0"), ("2", "1")):
        labels = frozenset({("group", "g"), ("topic", "t"), ("broker", "b"), ("queue", queue), ("process", process)})
        assert found["rocketfleet_worker_queue_offset", labels] == 5.0
    assert found["rocketfleet_worker_process_up", frozenset({("process", "1")})] == 0.0
    assert found["rocketfleet_worker_process_up", frozenset({("process", "2")})] == 1.0
    assert found["rocketfleet_worker_process_restarts_total", frozenset({("process", "1")})] == 5.0
    bucket = frozenset({("group", "g"), ("process", "0"), ("le", "+Inf")})
    assert found["rocketfleet_worker_handler_seconds_bucket", bucket] == 1.0
    assert text.decode().count("# TYPE rocketfleet_worker_queue_offset ") == 1
    assert (
        found["rocketfleet_worker_member_info", frozenset({("group", "g"), ("client_id", "me"), ("process", "0")})]
        == 1.0
    )
