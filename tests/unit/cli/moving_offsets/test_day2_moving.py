"""Moving offsets while others interfere: what is written is what was shown, or nothing is."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any

import click
import pytest

from rocketfleet.api.names import OFFSETS_MOVED
from rocketfleet.cli.moving_offsets.offset_files import OffsetSnapshot
from rocketfleet.cli.moving_offsets.offset_moving import HowToMove, move_offsets, read_all, take_snapshot
from rocketfleet.client.errors import ConnectError
from rocketfleet.group.at_brokers import Reading
from rocketfleet.wire.enums import MessageModel
from rocketfleet.wire.queue import MessageQueue

A, B = MessageQueue("orders", "a", 0), MessageQueue("orders", "b", 0)


class FakePlace:
    """A group at a broker, in memory. `before` is called with the name of each call, and may interfere."""

    group = "orders"

    def __init__(self) -> None:
        self.stored: dict[MessageQueue, int | None] = {A: 10, B: None}
        self.ends = {A: (0, 100), B: (0, 100)}
        self.present: set[str] = set()
        self.written: list[dict[MessageQueue, int]] = []
        self.calls: list[str] = []
        self.before: Callable[[str], None] = lambda _call: None
        self.deaf: set[MessageQueue] = set()
        self.failing: ConnectError | None = None

    def _note(self, call: str) -> None:
        self.calls.append(call)
        self.before(call)

    async def read(self, queues: Collection[MessageQueue]) -> Reading:
        return Reading(
            tuple(queues),
            {queue: at for queue, at in self.stored.items() if queue in queues},
            {queue: end for queue, end in self.ends.items() if queue in queues},
        )

    async def members(self) -> frozenset[str]:
        self._note("members")
        return frozenset(self.present)

    async def committed(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, int | None]:
        self._note("committed")
        return {queue: self.stored[queue] for queue in queues}

    async def write(self, offsets: Mapping[MessageQueue, int]) -> None:
        self._note("write")
        self.written.append(dict(offsets))
        self.stored.update({queue: offset for queue, offset in offsets.items() if queue not in self.deaf})
        if self.failing is not None:
            raise self.failing


class FakeKube:
    """A cluster that takes notes, or refuses them."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, dict[str, str]]] = []
        self.refusal: str | None = None

    async def annotate_group(self, name: str, annotations: dict[str, str]) -> None:
        if self.refusal is not None:
            raise click.ClickException(self.refusal)
        self.notes.append((name, annotations))


def opened(kube: bool = True, **spec: Any) -> Any:
    model = MessageModel(spec.pop("model", "Clustering"))
    engine = SimpleNamespace(value=spec.pop("engine", "Worker"))
    group = SimpleNamespace(
        spec=SimpleNamespace(message_model=model, engine=engine, suspend=spec.pop("suspend", False)),
        key=("shop", "orders"),
    )
    return SimpleNamespace(group=group, kube=FakeKube() if kube else None)


def move(
    place: FakePlace,
    asked: Mapping[MessageQueue, int],
    where: Any = None,
    *,
    dry_run: bool = False,
    output: Any = "table",
) -> int:
    async def run() -> int:
        reading = await read_all(place, place.stored)  # type: ignore[arg-type]  # a fake
        how = HowToMove(dry_run=dry_run, yes=True, output=output)
        return await move_offsets(where or opened(), place, reading, asked, how)  # type: ignore[arg-type]  # a fake

    return asyncio.run(run())


def test_only_what_changes_is_written_and_then_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    place = FakePlace()
    assert move(place, {A: 10, B: 250}) == 0
    assert place.written == [{B: 100}]
    shown = capsys.readouterr().out
    assert "250 is outside the queue" in shown
    assert "1 offset of group orders written and read back" in shown
    assert place.calls.index("write") < len(place.calls) - 1 - place.calls[::-1].index("committed")


def test_the_answer_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert move(FakePlace(), {A: 4, MessageQueue("gone", "a", 0): 1}, output="json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["written"], told["skipped"], told["repeated"]) == (1, 0, 6)
    assert told["queues"] == [
        {"topic": "orders", "broker": "a", "queue": 0, "now": 10, "to": 4, "messages": -6, "clamped": False}
    ]
    assert told["left"] == [{"topic": "orders", "broker": "b", "queue": 0}]
    assert told["absent"] == [{"topic": "gone", "broker": "a", "queue": 0}]


def test_a_dry_run_writes_nothing_even_where_it_may(capsys: pytest.CaptureFixture[str]) -> None:
    place = FakePlace()
    assert move(place, {A: 50}, dry_run=True) == 0
    place.present = {"m"}
    assert move(place, {A: 50}, dry_run=True) == 0
    said = capsys.readouterr()
    assert place.written == []
    assert "40 messages would be skipped" in said.out
    assert "now it would be refused: orders has 1 member" in said.err


def test_nothing_to_change_is_said_and_nothing_written(capsys: pytest.CaptureFixture[str]) -> None:
    place = FakePlace()
    assert move(place, {A: 10}) == 0
    assert place.written == []
    assert "every offset is there already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "advice"),
    [
        (opened(), "rocketfleet suspend orders -n shop --wait"),
        (opened(suspend=True), "they are on their way out: try again"),
        (opened(kube=False), "Stop them first"),
    ],
)
def test_a_group_with_members_is_refused_with_what_to_do(where: Any, advice: str) -> None:
    place = FakePlace()
    place.present = {"m"}
    with pytest.raises(click.ClickException) as refused:
        move(place, {A: 50}, where)
    assert advice in refused.value.message
    assert place.written == []


def test_a_broadcasting_group_is_refused() -> None:
    place = FakePlace()
    with pytest.raises(click.ClickException, match="broadcasting"):
        move(place, {A: 50}, opened(model="Broadcasting"))
    assert place.written == []


def test_offsets_that_changed_since_the_preview_stop_everything() -> None:
    place = FakePlace()

    def interfere(call: str) -> None:
        if call == "committed":
            place.stored[A] = 11

    place.before = interfere
    with pytest.raises(click.ClickException) as refused:
        move(place, {A: 50, B: 3})
    assert "orders@a/0: 11 instead of 10" in refused.value.message
    assert place.written == []


def test_a_member_that_came_since_the_preview_stops_everything() -> None:
    place = FakePlace()

    def interfere(call: str) -> None:
        if call == "members" and place.calls.count("members") == 2:
            place.present.add("late")

    place.before = interfere
    with pytest.raises(click.ClickException, match="nothing was changed: meanwhile orders has 1 member"):
        move(place, {A: 50})
    assert place.written == []


def test_a_member_that_came_during_the_write_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    place = FakePlace()

    def interfere(call: str) -> None:
        if call == "write":
            place.present.add("late")

    place.before = interfere
    assert move(place, {A: 50}) == 1
    assert "1 member joined while offsets were written (late)" in capsys.readouterr().err


def test_an_offset_that_the_broker_did_not_take_is_a_failure() -> None:
    place = FakePlace()
    place.deaf = {B}
    with pytest.raises(click.ClickException) as refused:
        move(place, {A: 50, B: 3})
    assert "1 of 2 offsets were written; not moved are orders@b/0: none instead of 3" in refused.value.message


def test_a_broken_connection_says_how_far_it_came() -> None:
    place = FakePlace()
    place.deaf, place.failing = {B}, ConnectError("b:1", "refused")
    with pytest.raises(click.ClickException) as refused:
        move(place, {A: 50, B: 3})
    assert "1 of 2 offsets were written" in refused.value.message
    assert "cannot connect to b:1" in refused.value.message


def test_half_a_reading_is_no_ground_for_a_change() -> None:
    place = FakePlace()
    del place.ends[B]
    with pytest.raises(click.ClickException, match="the offsets of orders@b/0 are not known"):
        move(place, {A: 50})
    assert place.written == []


def test_a_snapshot_is_of_its_group_and_cluster() -> None:
    snapshot = OffsetSnapshot("orders", ("c1",), "2026-01-01T00:00:00Z", {A: 5, B: None})
    assert take_snapshot(snapshot, "orders", ("c1",), force=False) == {A: 5}
    with pytest.raises(click.ClickException, match="is of group orders, not of bills"):
        take_snapshot(snapshot, "bills", ("c1",), force=False)
    with pytest.raises(click.ClickException, match="is of cluster c1, and the group is on c2"):
        take_snapshot(snapshot, "orders", ("c2",), force=False)
    assert take_snapshot(snapshot, "bills", ("c2",), force=True) == {A: 5}


def test_the_operator_is_told_that_it_was_on_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    where = opened()
    assert move(FakePlace(), {A: 50}, where) == 0
    assert [(name, list(notes)) for name, notes in where.kube.notes] == [("orders", [OFFSETS_MOVED])]
    where = opened()
    where.kube.refusal = "no patches for you"
    assert move(FakePlace(), {A: 50}, where) == 0  # the offsets are where they should be
    assert "no patches for you" in capsys.readouterr().err
    assert move(FakePlace(), {A: 50}, opened(kube=False)) == 0


def test_of_a_spark_group_it_is_said_that_the_checkpoint_wins(capsys: pytest.CaptureFixture[str]) -> None:
    for engine, warned in (("Spark", True), ("Worker", False)):
        place = FakePlace()
        assert move(place, dict.fromkeys(place.stored, 0), opened(engine=engine), dry_run=True) == 0
        assert ("spark.checkpoint" in capsys.readouterr().err) is warned
