"""Whether the pods of somebody's own consumer (engine Container) have joined the group: a pure decision.

Our worker says itself when it has joined. Of another program Kubernetes knows only that it runs, which a JVM does many
seconds before it is a member; an update that went by that would take down the next pod while the one before it does not
consume yet. So such a pod counts as ready only when a member at the broker is its own. That is told, in this order:

1. by a client id that holds the pod's uid: the best there is, and the consumer's to give;
2. by the pod's address, where its connections come from;
3. by its node's address, where connections leave the node under that.

Pods that share an address (hostNetwork, several behind one node's address; processes of one machine, which have none)
cannot be told apart, but counted: when as many members come from there as there are pods, all have joined.

A pod without a member is *missing* where that is certain: the broker shows members of its neighbours as theirs, and no
member that is nobody's. Such a pod does not consume, however long it has been running. In every other case nobody can
know: the brokers do not answer, they see addresses that are no pod's, or do not show this kind of member at all. Then
the pod is given JOIN_LIMIT seconds from its own readiness, and counts as ready after that; the conditions say so.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rocketfleet.controller.planning.snapshot import Joining, Pod

JOIN_LIMIT = 60.0  # seconds that a ready pod has to show up at the broker, where it cannot be told whether it has

Hosts = Mapping[str, Collection[str]]  # client id → the addresses it is connected from


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod of another engine, with the addresses that its connections may come from."""

    pod: Pod
    host: str | None = None
    node: str | None = None


@dataclass(slots=True)
class _Found:
    """What the members say of the pods. `nobodys` are those that belong to none."""

    nobodys: dict[str, Collection[str]]
    own: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by pod's uid: its client ids
    joined: set[str] = field(default_factory=set)  # uids


def with_members(candidates: Sequence[Candidate], members: Hosts, now: float, *, complete: bool) -> list[Pod]:
    """The pods with the client ids that are theirs, ready only if they count as members. `complete`: all brokers have
    said who is in the group.
    """
    found = _search([one for one in candidates if not one.pod.ended], members)
    certain = complete and not found.nobodys and bool(found.own)
    return [_judged(one, found, certain, now) for one in candidates]


def _judged(candidate: Candidate, found: _Found, certain: bool, now: float) -> Pod:
    pod = replace(candidate.pod, client_ids=found.own.get(candidate.pod.uid, ()))
    if not pod.ready:
        return pod
    if pod.uid in found.joined:
        return replace(pod, joining=Joining.JOINED)
    if certain:
        return replace(pod, ready=False, joining=Joining.MISSING)
    if now < (pod.created if pod.ready_since is None else pod.ready_since) + JOIN_LIMIT:
        return replace(pod, ready=False, joining=Joining.AWAITED)
    return replace(pod, joining=Joining.ASSUMED)


def _search(candidates: Sequence[Candidate], members: Hosts) -> _Found:
    found = _Found(dict(members))
    for one in candidates:
        _own(found, one, [client_id for client_id in found.nobodys if one.pod.uid in client_id])
    for host, pods in _by_address(found, candidates, lambda one: one.host).items():
        from_there = _from(found, host)
        if len(pods) == 1:
            _own(found, pods[0], from_there)
        else:
            _count(found, pods, from_there)
    for node, pods in _by_address(found, candidates, lambda one: one.node).items():
        _count(found, pods, _from(found, node))
    homeless = [one for one in candidates if one.host is None and one.node is None and one.pod.uid not in found.joined]
    if homeless:
        _count(found, homeless, list(found.nobodys))
    return found


def _own(found: _Found, one: Candidate, client_ids: list[str]) -> None:
    """These can be nobody else's."""
    if client_ids:
        found.own[one.pod.uid] = tuple(sorted(client_ids))
        _count(found, [one], client_ids)


def _count(found: _Found, pods: list[Candidate], client_ids: list[str]) -> None:
    """These are of those pods, who knows which of whom."""
    if len(client_ids) >= len(pods):
        found.joined.update(one.pod.uid for one in pods)
    for client_id in client_ids:
        del found.nobodys[client_id]


def _from(found: _Found, address: str) -> list[str]:
    return [client_id for client_id, hosts in found.nobodys.items() if address in hosts]


def _by_address(
    found: _Found, candidates: Sequence[Candidate], address: Callable[[Candidate], str | None]
) -> dict[str, list[Candidate]]:
    """The pods that have not been found yet, by one of their addresses."""
    table: dict[str, list[Candidate]] = {}
    for one in candidates:
        where = address(one)
        if where is not None and one.pod.uid not in found.joined:
            table.setdefault(where, []).append(one)
    return table
