"""The network of one member: a name server of its own, whose routes lead through proxies of its own.

A member is told the address of its own name-server proxy. What that answers is rewritten: the address of each broker
becomes that of a proxy between this member and that broker. So nothing of a broker's configuration has to change, and
one member's network can be in trouble while another's is fine.

What passes is classified here: who asks which broker for which lock, and what it was granted. Whether a request for a
lock is a renewal or a question depends on what the member has been granted on this connection: after an interruption
it needs to be granted twice.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.broker.replay.judge import Seen
from tests.broker.replay.proxy import Passage, Proxy
from tests.broker.replay.script import BEAT, CLAIM, COMMIT, LOCK, LOOK, MARK, PULL, READ, RELEASE, RENEW, UNLOCK

from rocketfleet.wire import fastjson
from rocketfleet.wire.bodies import LockBatchRequest, LockBatchResponse, UnlockBatchRequest
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, encode
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX

_FIRST_MARK = 1 << 30
_BY_CODE = {
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: LOOK,
    RequestCode.QUERY_CONSUMER_OFFSET: READ,
    RequestCode.UPDATE_CONSUMER_OFFSET: COMMIT,
    RequestCode.HEART_BEAT: BEAT,
    RequestCode.PULL_MESSAGE: PULL,
}


class MemberNetwork:
    """See the module."""

    def __init__(self, name_server: str, client_id: str, topic: str, tell: Callable[[Passage], None]) -> None:
        self._client_id = client_id
        self._topic = topic
        self._tell = tell
        self._names = Proxy(name_server, rewrite=self._rewrite)
        self._brokers: dict[str, Proxy] = {}  # real address → proxy
        self._opening: set[asyncio.Task[None]] = set()
        self._needed: dict[int, int] = {}  # queue → how many times its lock has to be granted until it is ours
        self._had: set[int] = set()  # queues whose lock was granted, and not given back since
        self.on_broker: Callable[[Proxy], None] = lambda proxy: None  # a proxy is new

    async def start(self) -> str:
        """The address of the member's name server."""
        await self._names.open()
        return self._names.address

    async def close(self) -> None:
        await asyncio.gather(*self._opening, return_exceptions=True)
        for proxy in (self._names, *self._brokers.values()):
            await proxy.close()

    # -- brokers ------------------------------------------------------------------------------------------------------

    @property
    def brokers(self) -> tuple[Proxy, ...]:
        return tuple(self._brokers.values())

    def to(self, address: str) -> Proxy:
        """The proxy to a broker; it is made, and opened, when the broker is first heard of."""
        if (proxy := self._brokers.get(address)) is None:
            proxy = self._brokers[address] = Proxy(address, observe=self._observe)
            self.on_broker(proxy)
            opening = asyncio.ensure_future(proxy.open())
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
        return proxy

    def doubt(self) -> None:
        """The member was cut off, or frozen: what it was granted has to be asked for again."""
        self._needed |= dict.fromkeys(self._had, 2)

    def forget(self) -> None:
        """The member is dead, and whoever comes under its name knows nothing."""
        self._needed.clear()
        self._had.clear()

    # -- what the name server says ------------------------------------------------------------------------------------

    def _rewrite(self, request: Command, answer: Command | None) -> bytes | None:
        if answer is None:
            return self._asked_about_real(request)
        if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC or answer.code != ResponseCode.SUCCESS:
            return None
        route: Any = fastjson.loads(bytes(answer.body))
        for broker in route.get("brokerDatas", ()):
            addresses = broker["brokerAddrs"]
            broker["brokerAddrs"] = {number: self.to(address).address for number, address in addresses.items()}
        answer.body = json.dumps(route).encode()
        return encode(answer)

    def _asked_about_real(self, request: Command) -> bytes | None:
        """A question that names a broker by the address of its proxy."""
        for address, proxy in self._brokers.items():
            if request.fields.get("brokerAddr") == proxy.address:
                request.fields["brokerAddr"] = address
                return encode(request)
        return None

    # -- what brokers are asked ---------------------------------------------------------------------------------------

    def _observe(self, passage: Passage) -> None:
        if passage.facts is None:
            passage.facts = self._classify(passage.command)
        seen = passage.facts
        assert isinstance(seen, Sort)
        if passage.answered is not None:
            self._answered(seen, passage)
        elif passage.forwarded is not None and seen.request == UNLOCK:
            for queue in seen.queues:
                self._needed.pop(queue, None)
                self._had.discard(queue)
        self._tell(passage)

    def _answered(self, sort: "Sort", passage: Passage) -> None:
        assert passage.answer is not None
        if sort.request not in (LOCK, RENEW) or passage.answer.code != ResponseCode.SUCCESS:
            return
        sort.granted = self._ours(LockBatchResponse.decode(bytes(passage.answer.body)).lock_ok_mq_set)
        for queue in sort.queues:
            if queue in sort.granted:
                self._needed[queue] = max(0, self._needed.get(queue, 1) - 1)
                self._had.add(queue)
            else:
                self._needed.pop(queue, None)
                self._had.discard(queue)

    def _ours(self, queues: tuple[MessageQueue, ...]) -> frozenset[int]:
        return frozenset(queue.queue_id for queue in queues if queue.topic == self._topic)

    def _classify(self, command: Command) -> "Sort":
        if command.code in (RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ):
            return self._lock(command)
        request = _BY_CODE.get(RequestCode(command.code), "") if command.code in _BY_CODE else ""
        if request not in (READ, COMMIT, PULL):
            return Sort(request)
        number = int(command.fields["queueId"])
        if command.fields["topic"] == self._topic:
            return Sort(request, frozenset({number}), offset=int(command.fields.get("commitOffset", -1)))
        is_mark = request == COMMIT and number >= _FIRST_MARK and command.fields["topic"].startswith(RETRY_PREFIX)
        return Sort(MARK if is_mark else "", offset=int(command.fields.get("commitOffset", -1)))

    def _lock(self, command: Command) -> "Sort":
        if command.code == RequestCode.UNLOCK_BATCH_MQ:
            unlock = UnlockBatchRequest.decode(bytes(command.body))
            queues = self._ours(unlock.mq_set)
            request = UNLOCK if unlock.client_id == self._client_id else RELEASE
            return Sort(request if queues else "", queues, name=unlock.client_id)
        lock = LockBatchRequest.decode(bytes(command.body))
        queues = self._ours(lock.mq_set)
        if not queues:
            return Sort(CLAIM if any(queue.queue_id >= _FIRST_MARK for queue in lock.mq_set) else "")
        certain = all(self._needed.get(queue, 1) == 0 for queue in queues)
        return Sort(RENEW if certain else LOCK, queues, name=lock.client_id)


@dataclass(slots=True)
class Sort:
    """What kind of request it is, and what it is about. `granted` are locks, once that is answered."""

    request: str
    queues: frozenset[int] = frozenset()
    name: str = ""
    offset: int = -1
    granted: frozenset[int] = frozenset()

    def told(self) -> str:
        """For a person."""
        queues = ", ".join(f"q{queue}" for queue in sorted(self.queues))
        parts = (
            queues,
            self.name and f"for {self.name}",
            self.offset >= 0 and str(self.offset),
            self.granted and "granted",
        )
        return " ".join(part for part in parts if part)


def sort_of(passage: Passage) -> Sort:
    """What an observed request is."""
    assert isinstance(passage.facts, Sort)
    return passage.facts


def as_seen(member: str, passage: Passage, names: Callable[[str], str]) -> Seen:
    """For the judge; `names` makes members of client ids."""
    sort = sort_of(passage)
    return Seen(
        member,
        sort.request,
        passage.forwarded,
        passage.answered,
        sort.queues,
        sort.granted,
        names(sort.name),
        sort.offset,
    )
