"""A script is carried out: members are processes, each with a network of its own, and the broker is a real one.

While it runs, a little traffic flows and all is written down: what passes the proxies, what handlers are given, what
was done to whom, and the stored offsets as they are found now and then. After its last action everything is made
whole again (`calm`), and what follows is judged by `judge.py`.
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.broker.cluster import Cluster
from tests.broker.replay.judge import Done, Handled, History
from tests.broker.replay.network import MemberNetwork, as_seen, sort_of
from tests.broker.replay.proxy import Do, Of, Passage, Proxy, Rule
from tests.broker.replay.schedule import Schedule
from tests.broker.replay.script import BEAT, HANDLE, MARK, PULL, RENEW, Action
from tests.support.waiting import TookTooLongError, until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_admin, broker_offsets
from rocketfleet.consumer.handover import roster
from rocketfleet.consumer.offset_storage.beginning import uptime
from rocketfleet.demo.verdict import read_record
from rocketfleet.producer.producer import Producer
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

ROOT = Path(__file__).resolve().parents[3]
_PATIENCE = 40.0
_BACKLOG = 10  # messages in each queue when the script begins
_EVERY = 0.1  # seconds between two more
_LINGER = 0.5  # seconds after the last action: had something wrong been begun, it would show
_LINGER_SLOW = 3.0  # where members may take their time to come back to a broker that has restarted
_FILLED = 0.2  # seconds in which what was sent is pulled


class Actor:
    """One member: its process, its network, and what is held of it."""

    def __init__(self, name: str, client_id: str, directory: Path, network: MemberNetwork) -> None:
        self.name = name
        self.client_id = client_id
        self.network = network
        self.record = directory / f"{name}.jsonl"
        self.log = directory / f"{name}.log"
        self.gate = directory / f"{name}.gate"
        self.process: subprocess.Popen[bytes] | None = None
        self.frozen = False
        self.rules: dict[str, list[tuple[Proxy, Rule]]] = {}
        self._directory = directory
        self._lives = itertools.count(1)
        self._go = directory / f"{name}.go"

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_record(self.record)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def owned(self) -> frozenset[int]:
        owns = [event["queues"] for event in self.events if event["event"] == "owns"]
        return frozenset(owns[-1]) if owns and self.alive else frozenset()

    def spawn(self, settings: dict[str, Any]) -> None:
        """Start a process that waits for `go`."""
        life = next(self._lives)
        self._go = self._directory / f"{self.name}.go{life}"
        path = self._directory / f"{self.name}.{life}.json"
        own = {"record": str(self.record), "gate": str(self.gate), "go": str(self._go), "client_id": self.client_id}
        path.write_text(json.dumps({**settings, **own}))
        temporary = self._directory / f"{self.name}.{life}.tmp"  # on another host, as it were
        temporary.mkdir()
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.broker.replay.member", str(path)],
                cwd=ROOT,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            )

    def go(self) -> None:
        self._go.touch()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def finished(self) -> int:
        return sum(event["event"] == "finish" for event in self.events)


class Stage:
    """Use as `async with Stage(...)`, then `play`."""

    def __init__(
        self,
        cluster: Cluster,
        schedule: Schedule,
        directory: Path,
        *,
        mutant: str = "",
        patience: float = _PATIENCE,
    ) -> None:
        lives = schedule.lives
        self._cluster = cluster
        self._schedule = schedule
        self._directory = directory
        self._topic = cluster.create_topic(queues=schedule.queues)
        self._group = cluster.create_group()
        self._queues = [MessageQueue(self._topic, "broker-a", number) for number in range(schedule.queues)]
        self._address = cluster.broker_address
        self._settings = {
            "topic": self._topic,
            "group": self._group,
            "mode": schedule.mode,
            "lock_lives": lives,
            "where": "LastOffset" if schedule.fresh else "FirstOffset",
            "mutant": mutant,
        }
        self.actors: dict[str, Actor] = {}
        self.history = History(lives)
        self._passages: list[tuple[str, Passage]] = []
        self._used: set[tuple[int, str]] = set()  # passages that have met an expectation
        self._began: list[float] = []  # when each action began
        self._done_at = 0.0  # when something was last done to somebody
        self._tasks: list[asyncio.Task[None]] = []
        self._at = ""
        self._patience = patience
        self._numbers = itertools.count()
        self._client = Client(ClientConfig(cluster.name_server, timeout=10.0))
        self._producer = Producer(self._client, f"{self._group}-traffic")

    async def __aenter__(self) -> Self:
        self._client.start()
        await self._producer.start()
        for name in self._schedule.members:
            client_id = f"{self._group}-{name}"
            network = MemberNetwork(
                self._cluster.name_server,
                client_id,
                self._topic,
                lambda passage, name=name: (
                    self._passages.append((name, passage)) if passage.forwarded is None else None
                ),  # type: ignore[misc]
            )
            actor = self.actors[name] = Actor(name, client_id, self._directory, network)
            network.on_broker = lambda proxy, actor=actor: self._rules_for(actor, proxy)  # type: ignore[misc]
            actor.spawn({**self._settings, "name_server": await network.start()})
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for actor in self.actors.values():
            if actor.alive and actor.process is not None:
                actor.process.kill()
                actor.process.wait()
            await actor.network.close()
        await self._producer.close()
        await self._client.close()

    # -- the play -----------------------------------------------------------------------------------------------------

    async def play(self) -> History:
        """Carry the whole script out, and what follows."""
        schedule = self._schedule
        await self._until(lambda: all(self._has(actor, "warm") for actor in self.actors.values()), "all are warm")
        if not schedule.restarted and any(action.do in ("join", "again") for action in schedule.actions):
            await self._until(self._is_old, "the broker has been up for long")
        if schedule.fresh:
            for queue in self._queues:
                await self._send(queue)
            self.history.old = 1
        else:
            for name in schedule.running:
                self.actors[name].go()
            await self._until(self._shared_out(schedule.running), "the group is settled")
            # Nothing is renewed every second any more, as after a doubt; and nobody is new.
            await asyncio.sleep(0.3)
        if schedule.restarted:
            await self._restart()
        self._done_at = time.monotonic()
        actions = list(schedule.actions)
        for action in actions:
            if action.do != "hold" and not self._tasks:
                await self._begin_traffic()
            self._at = f"{len(self._began)}. {action.written()}"
            self._began.append(time.monotonic())
            await getattr(self, f"_{action.do}")(action)
        self._at = "the end"
        await asyncio.sleep(self._linger())
        await self._calm()
        return self.so_far()

    def _linger(self) -> float:
        """How long things stay as they are at the end of the script. Who is cut off may stay away for no longer."""
        if not self.history.times_of("restart"):
            return _LINGER
        return _LINGER_SLOW if self._schedule.slow else 0.0

    async def _begin_traffic(self) -> None:
        if not self._schedule.fresh:
            for queue in self._queues * _BACKLOG:
                await self._send(queue)
            await asyncio.sleep(_FILLED)
            self._tasks.append(asyncio.create_task(self._traffic()))
        self._tasks.append(asyncio.create_task(self._look_at_offsets()))

    async def _traffic(self) -> None:
        for queue in itertools.cycle(self._queues):
            await asyncio.sleep(_EVERY)
            await self._send(queue)

    async def _send(self, queue: MessageQueue) -> None:
        body = f"n{next(self._numbers)}"
        while True:
            try:
                await self._producer.send(Message(self._topic, body.encode()), queue=queue)
            except RocketMQError:
                await asyncio.sleep(0.2)  # the broker is away; it may have it twice now, at two offsets
            else:
                self.history.sent[body] = time.monotonic()
                return

    async def _look_at_offsets(self) -> None:
        while True:
            for queue in self._queues:
                with contextlib.suppress(RocketMQError):
                    asked = time.monotonic()
                    stored = await self._stored(queue)
                    if stored is not None:
                        self.history.stored.append((asked, queue.queue_id, stored))
            await asyncio.sleep(0.1)

    async def _stored(self, queue: MessageQueue) -> int | None:
        return await broker_offsets.query_offset(
            self._client.remoting, self._address, self._group, queue, zero_if_not_found=False
        )

    # -- actions: each is done by the method of its name --------------------------------------------------------------

    def _rules_for(self, actor: Actor, proxy: Proxy) -> None:
        """A proxy is new: what is held of its member is held there too."""
        for request, rules in actor.rules.items():
            rules.append((proxy, proxy.add(_holding(request))))

    async def _hold(self, action: Action) -> None:
        actor = self.actors[action.member]
        if action.request == HANDLE:
            actor.gate.write_text(str(actor.finished()))
        elif action.request not in actor.rules:
            rules = actor.rules[action.request] = []
            rules += [(proxy, proxy.add(_holding(action.request))) for proxy in actor.network.brokers]

    async def _release(self, action: Action) -> None:
        actor = self.actors[action.member]
        if action.request == HANDLE:
            actor.gate.unlink(missing_ok=True)
        for proxy, rule in actor.rules.pop(action.request, ()):
            proxy.release(rule)

    async def _expect(self, action: Action) -> None:
        since = self._began[action.since]
        actor = self.actors[action.member]
        if action.request != HANDLE:
            await self._until(lambda: self._meets(action, since), "it happens")
            return
        if action.outcome == "finished" and actor.gate.exists():
            actor.gate.write_text(str(int(actor.gate.read_text()) + 1))
        event = {"begun": "begin", "finished": "finish"}[action.outcome]

        def happened() -> bool:
            events = [one for one in actor.events if one["event"] in ("begin", "finish")]
            if event == "begin" and len(events) % 2:
                return True  # it is at work
            return any(one["event"] == event and one["at"] >= since for one in events)

        await self._until(happened, "it happens")

    def _meets(self, action: Action, since: float) -> bool:
        for member, passage in self._passages:
            sort = sort_of(passage)
            key = (passage.number, action.outcome)
            if member != action.member or sort.request != action.request or key in self._used:
                continue
            if action.queue >= 0 and action.queue not in sort.queues:
                continue
            at = passage.arrived if action.outcome == "arrived" else passage.answered
            if at is None or at < since:
                continue
            granted = action.queue in sort.granted
            if (action.outcome == "granted" and not granted) or (action.outcome == "refused" and granted):
                continue
            moved = passage.answer is not None and passage.answer.code == ResponseCode.PULL_OFFSET_MOVED
            if action.request == PULL and action.outcome == "moved" and not moved:
                continue
            self._used.add(key)
            return True
        return False

    async def _deafen(self, action: Action) -> None:
        for proxy in self.actors[action.member].network.brokers:
            proxy.add(Rule(_means(action.request), Do.DROP, Of.ANSWER, count=1))

    async def _aside(self, action: Action) -> None:
        actor = self.actors[action.member]
        rules = actor.rules.setdefault(f"late {action.request}", [])
        for proxy in actor.network.brokers:
            rules.append((proxy, proxy.add(Rule(_means(action.request), Do.HOLD, count=1, newest=False))))
        await self._until(lambda: any(rule.met for _, rule in rules), "it is sent")
        self.history.done.append(Done("aside", time.monotonic(), time.monotonic(), action.member))
        await asyncio.sleep(action.seconds)

    async def _free(self, action: Action) -> None:
        for proxy, rule in self.actors[action.member].rules.pop(f"late {action.request}", ()):
            proxy.release(rule)

    async def _pass(self, action: Action) -> None:
        await asyncio.sleep(max(0.0, self._done_at + action.seconds - time.monotonic()))

    async def _join(self, action: Action) -> None:
        since = time.monotonic()
        self.actors[action.member].go()
        await self._listed(action.member, since)
        self._note(action, since)

    async def _again(self, action: Action) -> None:
        await self._join(action)

    async def _listed(self, member: str, since: float) -> None:
        def beats() -> bool:
            return any(
                name == member and sort_of(one).request == BEAT and one.answered is not None and one.answered >= since
                for name, one in self._passages
            )

        await self._until(beats, f"{member} is listed")

    async def _kill(self, action: Action) -> None:
        actor, since = self.actors[action.member], time.monotonic()
        assert actor.process is not None
        actor.send(signal.SIGKILL)
        actor.process.wait()
        for proxy in actor.network.brokers:
            await proxy.reset()
        actor.network.forget()
        self._note(action, since)
        if any(one.do == "again" and one.member == action.member for one in self._schedule.actions):
            actor.spawn({**self._settings, "name_server": await actor.network.start()})

    async def _freeze(self, action: Action) -> None:
        actor, since = self.actors[action.member], time.monotonic()
        actor.send(signal.SIGSTOP)
        actor.frozen = True
        self._note(action, since)

    async def _wake(self, action: Action) -> None:
        actor, since = self.actors[action.member], time.monotonic()
        actor.network.doubt()
        actor.frozen = False
        self._note(action, since)
        actor.send(signal.SIGCONT)

    async def _drain(self, action: Action) -> None:
        since = time.monotonic()
        self.actors[action.member].send(signal.SIGTERM)
        self._note(action, since)

    async def _gone(self, action: Action) -> None:
        actor = self.actors[action.member]
        await self._until(lambda: not actor.alive, "it has left")

    async def _cut(self, action: Action) -> None:
        actor, since = self.actors[action.member], time.monotonic()
        actor.network.doubt()
        self._note(action, since)
        await actor.network.to(self._address).shut()

    async def _mend(self, action: Action) -> None:
        actor, since = self.actors[action.member], time.monotonic()
        await actor.network.to(self._address).open()
        if not actor.frozen:
            await self._listed(action.member, since)
        self._note(action, since)

    async def _restart(self, action: Action | None = None) -> None:
        done, since = action or Action("restart"), time.monotonic()
        proxies = [actor.network.to(self._address) for actor in self.actors.values() if actor.alive]
        away = asyncio.gather(*(proxy.shut() for proxy in proxies))
        self._cluster.kill()
        await away
        for actor in self.actors.values():
            actor.network.doubt()
        await asyncio.to_thread(self._cluster.restart)
        self._note(done, since)
        for name, actor in self.actors.items():
            if not self._has(actor, "owns"):  # it has not joined yet, and finds the broker as it is then
                await self.actors[name].network.to(self._address).open()

    async def _rewind(self, action: Action) -> None:
        queue, since = self._queues[action.queue], time.monotonic()
        offset = (
            0 if action.offset == 0 else await broker_offsets.max_offset(self._client.remoting, self._address, queue)
        )
        await broker_offsets.reset_queue_offset(self._client.remoting, self._address, self._group, queue, offset)
        self._note(action._replace(offset=offset), since)

    async def _send_one(self, action: Action) -> None:
        await self._send(self._queues[action.queue])

    def _note(self, action: Action, since: float) -> None:
        now = self._done_at = time.monotonic()
        self.history.done.append(Done(action.do, since, now, action.member, action.queue, action.offset))

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _calm(self) -> None:
        """All is whole again, and all comes right."""
        predicted = self._schedule.prediction
        for actor in self.actors.values():
            for request in list(actor.rules):
                await self._release(Action("release", actor.name, request))
            actor.gate.unlink(missing_ok=True)
            await actor.network.to(self._address).open()
            if actor.frozen and actor.alive:
                await self._wake(Action("wake", actor.name))
        shares = {name: {q for q, owner in enumerate(predicted.owners) if owner == name} for name in self.actors}
        await self._until(
            lambda: all(actor.owned == shares[name] for name, actor in self.actors.items()),
            f"the owners are {predicted.owners}",
        )
        if self._schedule.fresh:
            for queue in self._queues * 3:
                await self._send(queue)
        await asyncio.sleep(0.5)
        for task in self._tasks[:1] if not self._schedule.fresh else []:
            task.cancel()
        await self._until(lambda: not self._missing(), "all is handled")
        ends = [await broker_offsets.max_offset(self._client.remoting, self._address, one) for one in self._queues]

        async def committed() -> bool:
            return [await self._stored(queue) for queue in self._queues] == ends

        await until(committed, "all is committed", self._patience, every=0.05, report=self.describe)
        for actor in self.actors.values():
            if actor.alive:
                actor.send(signal.SIGTERM)
        await self._until(lambda: not any(actor.alive for actor in self.actors.values()), "all stop")

    def _missing(self) -> set[str]:
        self.history.due_since = self._due_since()
        due = {one for one, at in self.history.sent.items() if at >= self.history.due_since}
        return due - {one.message for one in self._handled() if one.end is not None}

    def _due_since(self) -> float:
        """When the group had begun: what was sent before then may be history."""
        if not self._schedule.fresh:
            return 0.0
        marks = (one.answered for _, one in self._passages if sort_of(one).request == MARK and sort_of(one).offset > 0)
        return min((at for at in marks if at is not None), default=float("inf"))

    def _handled(self) -> list[Handled]:
        handled: list[Handled] = []
        for name, actor in self.actors.items():
            begun: dict[tuple[int, int], dict[str, Any]] = {}
            for event in actor.events:
                if event["event"] == "begin":
                    begun[event["queue"], event["offset"]] = event
                elif event["event"] == "finish":
                    one = begun.pop((event["queue"], event["offset"]))
                    handled.append(Handled(name, one["queue"], one["offset"], one["id"], one["at"], event["at"]))
            handled += [
                Handled(name, one["queue"], one["offset"], one["id"], one["at"], None) for one in begun.values()
            ]
        return handled

    def so_far(self) -> History:
        """What is known now."""
        by_client_id = {actor.client_id: name for name, actor in self.actors.items()}
        self.history.handled = self._handled()
        self.history.seen = [
            as_seen(name, passage, lambda client_id: by_client_id.get(client_id, client_id))
            for name, passage in self._passages
        ]
        return self.history

    async def _is_old(self) -> bool:
        """Whether a newcomer at this broker has nobody to wait for."""
        info = await broker_admin.runtime_info(self._client.remoting, self._address)
        return (uptime(info) or 0.0) > roster.REJOIN_SECONDS

    # -- waiting ------------------------------------------------------------------------------------------------------

    @staticmethod
    def _has(actor: Actor, event: str) -> bool:
        return any(one["event"] == event for one in actor.events)

    def _shared_out(self, names: tuple[str, ...]) -> Any:
        def holds() -> bool:
            shares = [self.actors[name].owned for name in names]
            everything = sorted(queue for share in shares for queue in share)
            return everything == list(range(len(self._queues)))

        return holds

    async def _until(self, condition: Any, what: str) -> None:
        try:
            within = self._patience if self._began else _PATIENCE
            await until(condition, what, within, every=0.005, ignoring=(RocketMQError,))
        except TookTooLongError as error:
            raise TookTooLongError(f"{error}\nat {self._at}\n{self.describe()}") from None

    def describe(self) -> str:
        """What happened so far, in order, and what members said of it."""
        start = self._began[0] if self._began else 0.0
        lines = [
            (at, f"-- {number}. {action.written()}")
            for number, (at, action) in enumerate(zip(self._began, self._schedule.actions, strict=False))
        ]
        lines += [(one.begin, f"{one.member} begins {one.offset} of q{one.queue}") for one in self._handled()]
        for name, passage in self._passages:
            sort = sort_of(passage)
            if sort.request not in ("", BEAT, PULL, RENEW):
                times = [f"{at - start:.3f}" if at is not None else "-" for at in (passage.forwarded, passage.answered)]
                lines.append((passage.arrived, f"{name} {sort.request} {sort.told()} {' to '.join(times)}"))
        told: list[str] = []
        for at, line in sorted(lines):
            # Of handlers and commits that follow each other only the first and the last are of interest.
            plain = [" begins " in one or " commit " in one for one in (*told[-2:], line)]
            if plain == [True, True, True]:
                told.pop()
            told.append(f"{at - start:8.3f} {line}")
        logs = [f"--- {name}\n{actor.log.read_text()[-6000:]}" for name, actor in self.actors.items()]
        return "\n".join([*told, *logs])


def _means(request: str) -> Callable[[Passage], bool]:
    return lambda passage: sort_of(passage).request == request


def _holding(request: str) -> Rule:
    return Rule(_means(request), Do.HOLD)
