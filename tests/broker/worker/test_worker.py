"""A worker process on a real broker: consumes, says what it holds, drains."""

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.worker.conftest import Offset, Send, Start
from tests.broker.worker.worker_process import TOKEN
from tests.support.waiting import wait_until

from rocketfleet.wire.queue import MessageQueue


def bodies(count: int, prefix: str = "m") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def queue_of(entry: dict[str, Any]) -> MessageQueue:
    return MessageQueue(entry["topic"], entry["broker"], entry["queueId"])


async def test_it_consumes_says_what_it_holds_and_drains_to_the_brokers_offsets(
    start_worker: Start, send: Send, offset_at_broker: Offset, topic: str, group: str
) -> None:
    await send(topic, bodies(200))
    worker = start_worker("handle", environment={"POD_NAME": "orders-0", "POD_UID": "1234"})
    worker.until_ready()
    worker.until_handled(bodies(200))
    assert Counter(worker.handled) == Counter(bodies(200))

    assignment = worker.json("/assignment")
    assert assignment["clientId"] == "orders-0@1234"
    assert assignment["members"] == ["orders-0@1234"]
    assert (assignment["group"], assignment["phase"], assignment["settled"]) == (group, "Running", True)
    owned = worker.owned(topic)
    assert owned.keys() == {("broker-a", number) for number in range(8)}
    assert all(0 < queue["leaseSeconds"] <= 60 for queue in owned.values())
    wait_until(lambda: sum(queue["offset"] for queue in worker.owned(topic).values()) == 200, "offsets add up")

    metrics = worker.ask("/metrics", token=None)[1]
    assert f'rocketfleet_worker_messages_handled_total{{group="{group}"}} 200.0' in metrics
    assert f'rocketfleet_worker_handler_seconds_count{{group="{group}"}} 200.0' in metrics
    assert f'rocketfleet_worker_queues{{group="{group}",state="Owned"}} 9.0' in metrics

    answer = await asyncio.to_thread(worker.json, "/drain", "POST")
    assert answer["confirmed"] is True
    assert {queue["topic"] for queue in answer["queues"]} == {topic, f"%RETRY%{group}"}
    assert sum(queue["offset"] for queue in answer["queues"] if queue["topic"] == topic) == 200
    for entry in answer["queues"]:
        assert await offset_at_broker(group, queue_of(entry)) == entry["offset"]
    assert worker.wait() == 0
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in worker.log)
    assert any(line.get("queue") == f"{topic}@broker-a/0" and "offset" in line for line in worker.log)


async def test_configured_as_the_operator_does_by_a_settings_file_and_the_environment(
    start_worker: Start, send: Send, topic: str, group: str, tmp_path: Path
) -> None:
    await send(topic, bodies(40))
    settings = {
        "groupName": group,
        "subscriptions": [{"topic": topic, "expression": "*", "type": "Tag"}],
        "consumeMode": "Orderly",
        "consumeFromWhere": "FirstOffset",
        "allocation": {"strategy": "Balanced"},
        "consume": {"threads": 4, "batchSize": 8, "pullBatchSize": 16},
        "shutdown": {"drainTimeoutSeconds": 20},
    }
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(settings))
    worker = start_worker(
        "batch",
        environment={
            "ROCKETFLEET_SETTINGS": str(path),
            "ROCKETFLEET_GROUP": "",
            "ROCKETFLEET_TOPICS": "",
            "ROCKETFLEET_CONSUME_FROM_WHERE": "",
        },
    )
    worker.until_ready()
    worker.until_handled(bodies(40))
    assert worker.json("/assignment")["strategy"] == "BALANCED"
    worker.signal()
    assert worker.wait() == 0


async def test_sigterm_hands_over_to_a_second_worker_with_nothing_lost_or_repeated(
    start_worker: Start, send: Send, topic: str
) -> None:
    first = start_worker("slowly", name="first")
    first.until_ready()
    sending = asyncio.create_task(send(topic, bodies(600)))
    await asyncio.to_thread(wait_until, lambda: len(first.handled) > 50, "the first worker is at it")
    second = start_worker("slowly", name="second")
    await asyncio.to_thread(second.until_owns, topic, 4)
    await asyncio.to_thread(first.until_owns, topic, 4)
    first.signal()
    assert await asyncio.to_thread(first.wait) == 0
    await sending
    await asyncio.to_thread(second.until_handled, bodies(600))
    await asyncio.to_thread(second.until_owns, topic, 8)
    second.signal(signal.SIGINT)
    assert await asyncio.to_thread(second.wait) == 0
    assert Counter(second.handled) == Counter(bodies(600))


async def test_leases_are_as_short_as_the_brokers_locks(start_worker: Start, topic: str) -> None:
    worker = start_worker("handle", "--lock-max-live-time", "8")
    worker.until_owns(topic, 8)
    assert all(0 <= queue["leaseSeconds"] < 8 for queue in worker.owned(topic).values())
    worker.signal()
    assert worker.wait() == 0


async def test_a_round_of_rebalancing_can_be_asked_for(start_worker: Start, topic: str) -> None:
    first = start_worker("handle", name="first")
    first.until_ready()
    second = start_worker("handle", name="second")
    second.until_ready()
    answer = await asyncio.to_thread(first.json, "/rebalance", "POST")
    assert len(answer["members"]) == 2
    assert {queue["topic"] for queue in answer["queues"]} >= {topic}
    first.until_owns(topic, 4)
    second.until_owns(topic, 4)
    assert not first.owned(topic).keys() & second.owned(topic).keys()


async def test_a_handler_that_raises_fails_its_message_and_nothing_else(
    start_worker: Start, send: Send, topic: str, group: str
) -> None:
    await send(topic, ["bad", "bad-exit", *bodies(20)])
    worker = start_worker("fail_once")
    again = {f"bad 1 {topic}", f"bad-exit 1 {topic}"}
    wait_until(lambda: again <= set(worker.handled_lines), "the messages have come again")
    assert Counter(worker.handled) == Counter([*["bad", "bad-exit"] * 2, *bodies(20)])
    told = [line for line in worker.log if "the handler does not like bad" in line.get("exception", "")]
    assert len(told) == 1
    assert told[0]["exception"].startswith("Traceback")
    assert told[0]["queue"].startswith(topic)
    assert isinstance(told[0]["offset"], int)
    metrics = worker.ask("/metrics")[1]
    assert f'rocketfleet_worker_messages_failed_total{{group="{group}"}} 2.0' in metrics
    assert f'rocketfleet_worker_send_back_failed_total{{group="{group}"}} 0.0' in metrics
    # They came by the retry topic, not by a second try on the spot.
    wait_until(
        lambda: [queue["offset"] for queue in worker.owned(f"%RETRY%{group}").values()] == [2], "both came by %RETRY%"
    )
    worker.signal()
    assert worker.wait() == 0


async def test_health_fails_when_an_asynchronous_handler_blocks_the_loop(
    start_worker: Start, send: Send, topic: str
) -> None:
    worker = start_worker("block", "--stuck-after", "1")
    worker.until_ready()
    assert worker.ask("/healthz", token=None) == (200, "ok\n")
    worker.hold_file.touch()
    await send(topic, ["stuck"])
    status, sentence = wait_until(lambda: (a := worker.ask("/healthz", token=None))[0] == 503 and a, "unhealthy")
    assert status == 503
    assert "event loop has not run" in sentence
    # What only looks is still answered.
    assert len(worker.json("/assignment")["queues"]) == 9
    assert "rocketfleet_worker_loop_delay_seconds" in worker.ask("/metrics")[1]
    worker.hold_file.unlink()
    wait_until(lambda: worker.ask("/healthz", token=None)[0] == 200, "healthy again")
    worker.signal()
    assert worker.wait() == 0


async def test_a_second_signal_hurries(start_worker: Start, send: Send, topic: str) -> None:
    worker = start_worker("hold", "--drain-timeout", "3600")
    worker.until_ready()
    worker.hold_file.touch()
    await send(topic, ["held"])
    wait_until(lambda: worker.handled == ["held"], "the handler has the message")
    worker.signal()
    wait_until(lambda: "Draining" in worker.json("/assignment")["phase"], "draining")
    assert worker.ask("/readyz")[0] == 503
    assert worker.ask("/rebalance", "POST")[0] == 409
    worker.signal()
    assert worker.wait() == 5  # every offset is confirmed; the message itself comes again
    assert any("the handlers of 1 message were cut short" in line["message"] for line in worker.log)


async def test_the_first_signal_after_a_call_to_drain_does_not_hurry(
    start_worker: Start, send: Send, topic: str
) -> None:
    """As in an eviction, or a deletion by the operator, while a drain is under way."""
    worker = start_worker("hold", "--drain-timeout", "3600")
    worker.until_ready()
    worker.hold_file.touch()
    await send(topic, bodies(3))
    wait_until(lambda: len(worker.handled) == 3, "handlers have the messages")
    draining = asyncio.create_task(asyncio.to_thread(worker.json, "/drain", "POST"))
    await asyncio.to_thread(wait_until, lambda: worker.json("/assignment")["phase"] == "Draining", "draining")
    worker.signal()
    await asyncio.to_thread(wait_until, lambda: "asked to stop" in worker.log_text, "the signal is heard")
    worker.hold_file.unlink()
    answer = await draining
    assert sum(queue["unfinished"] for queue in answer["queues"]) == 0
    assert sum(queue["offset"] for queue in answer["queues"] if queue["topic"] == topic) == 3
    assert worker.wait() == 0


async def test_the_second_signal_hurries_though_a_call_came_first(start_worker: Start, send: Send, topic: str) -> None:
    worker = start_worker("hold", "--drain-timeout", "3600")
    worker.until_ready()
    worker.hold_file.touch()
    await send(topic, ["held"])
    wait_until(lambda: worker.handled == ["held"], "the handler has the message")
    draining = asyncio.create_task(asyncio.to_thread(worker.json, "/drain", "POST"))
    await asyncio.to_thread(wait_until, lambda: worker.json("/assignment")["phase"] == "Draining", "draining")
    worker.signal()
    await asyncio.to_thread(wait_until, lambda: "asked to stop" in worker.log_text, "the first signal is heard")
    worker.signal()
    answer = await draining
    assert sum(queue["unfinished"] for queue in answer["queues"]) == 1
    assert (answer["confirmed"], answer["unfinished"], answer["exitCode"]) == (True, 1, 5)
    assert worker.wait() == 5


async def test_one_that_waits_is_done_when_its_handlers_are(start_worker: Start, send: Send, topic: str) -> None:
    worker = start_worker("hold", "--drain-timeout", "0.2", "--on-drain-timeout", "Wait")
    worker.until_ready()
    worker.hold_file.touch()
    await send(topic, ["held"])
    wait_until(lambda: worker.handled == ["held"], "the handler has the message")
    # Callers that give up, as an operator does after a while: it is asked again.
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(worker.json, "/drain", "POST", timeout=1.0)
        assert worker.json("/assignment")["phase"] == "Draining"
    worker.hold_file.unlink()
    assert worker.wait() == 0
    assert "cut short: they" not in worker.log_text


async def test_one_that_waits_hurries_by_a_second_signal_too(start_worker: Start, send: Send, topic: str) -> None:
    worker = start_worker("hold", "--processes", "2", "--on-drain-timeout", "Wait")
    worker.until_ready()
    worker.hold_file.touch()
    await send(topic, ["held"])
    wait_until(lambda: worker.handled == ["held"], "the handler has the message")
    worker.signal()
    wait_until(lambda: "Draining" in worker.json("/assignment")["phase"], "draining")
    worker.signal()
    assert worker.wait() == 5


async def test_a_second_call_to_drain_gets_the_same_answer(start_worker: Start, send: Send, topic: str) -> None:
    worker = start_worker("hold")
    worker.until_ready()
    worker.hold_file.touch()
    await send(topic, ["held"])
    wait_until(lambda: worker.handled == ["held"], "the handler has the message")
    first = asyncio.create_task(asyncio.to_thread(worker.json, "/drain", "POST"))
    await asyncio.to_thread(wait_until, lambda: worker.json("/assignment")["phase"] == "Draining", "draining")
    second = asyncio.create_task(asyncio.to_thread(worker.json, "/drain", "POST"))
    worker.hold_file.unlink()
    assert await first == await second
    assert sum(queue["offset"] for queue in (await first)["queues"] if queue["topic"] == topic) == 1
    assert worker.wait() == 0


async def test_offsets_that_are_not_confirmed_are_named_and_change_the_exit_code(
    start_worker: Start, send: Send, broker: Cluster, topic: str
) -> None:
    await send(topic, bodies(8))
    worker = start_worker("handle", "--drain-timeout", "1")
    worker.until_ready()
    worker.until_handled(bodies(8))
    broker.pause()
    worker.signal()
    code = await asyncio.to_thread(worker.wait)
    broker.resume()
    assert code == 4
    unsafe = {line["queue"] for line in worker.log if "is not confirmed by the broker" in line["message"]}
    assert unsafe >= {f"{topic}@broker-a/{number}" for number in range(8)}


async def test_the_token_is_needed(start_worker: Start) -> None:
    worker = start_worker("handle")
    worker.until_ready()
    for path in ("/healthz", "/readyz", "/metrics"):
        assert worker.ask(path, token=None)[0] == 200
    assert worker.ask("/assignment", token=None)[0] == 401
    for path in ("/drain", "/rebalance"):
        assert worker.ask(path, "POST", token=None)[0] == 401
        assert worker.ask(path, "POST", token="wrong")[0] == 403
        assert worker.ask(path, "GET")[0] == 405
    assert worker.json("/assignment")["phase"] == "Running"
    assert TOKEN not in worker.log_text


async def test_without_a_token_nothing_can_be_changed(start_worker: Start) -> None:
    worker = start_worker("handle", token=None)
    worker.until_ready()
    assert worker.ask("/assignment", token=None)[0] == 200
    for token in (None, "", "guess"):
        status, sentence = worker.ask("/drain", "POST", token=token)
        assert status == 403
        assert "ROCKETFLEET_CONTROL_TOKEN" in sentence
    worker.signal()
    assert worker.wait() == 0


async def test_a_topic_that_does_not_exist_is_waited_for_and_then_given_up(start_worker: Start) -> None:
    worker = start_worker("handle", "--join-timeout", "2", environment={"ROCKETFLEET_TOPICS": "no-such-topic"})
    status, sentence = wait_until(
        lambda: (a := worker.ask("/readyz"))[0] == 503 and "no-such" in a[1] and a, "told why"
    )
    assert status == 503
    assert "no-such-topic" in sentence
    assert worker.wait() == 3
    assert "no-such-topic" in worker.log[-1]["message"]


@pytest.mark.parametrize("handler", ["later", "batch"])
async def test_other_kinds_of_handlers(start_worker: Start, send: Send, topic: str, handler: str) -> None:
    await send(topic, bodies(100))
    worker = start_worker(handler, "--batch-size", "10")
    worker.until_handled(bodies(100))
    worker.signal()
    assert worker.wait() == 0
    assert Counter(worker.handled) == Counter(bodies(100))
