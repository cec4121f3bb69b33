"""Somebody's own consumers: which of their pods are members, which are not, and of which nobody can know."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.controller.planning.joining import JOIN_LIMIT, Candidate, with_members
from rocketfleet.controller.planning.snapshot import Joining, Pod, PodPhase

NOW = 10_000.0


def candidate(ordinal: int, host: str | None, node: str | None = None, **facts: Any) -> Candidate:
    """A pod that became ready now."""
    pod = Pod(
        f"orders-{ordinal}", ordinal, f"5f1c-{ordinal:04}", "r", NOW, PodPhase.RUNNING, ready=True, ready_since=NOW
    )
    return Candidate(replace(pod, **facts), host, node)


def judged(
    *candidates: Candidate, members: Mapping[str, str], complete: bool = True, now: float = NOW
) -> list[Joining | None]:
    """`members`: where each is connected from."""
    hosts = {name: frozenset({host}) for name, host in members.items()}
    pods = with_members(candidates, hosts, now, complete=complete)
    for pod, one in zip(pods, candidates, strict=True):
        assert pod.ready is (one.pod.ready and pod.joining not in (Joining.AWAITED, Joining.MISSING))
    return [pod.joining for pod in pods]


def test_a_pod_has_joined_when_a_member_comes_from_its_address() -> None:
    pods = with_members([candidate(0, "10.0.0.1")], {"a": {"10.0.0.1"}, "b": {"10.0.0.1"}}, NOW, complete=True)
    assert (pods[0].joining, pods[0].client_ids) == (Joining.JOINED, ("a", "b"))


def test_a_pod_is_missing_for_as_long_as_its_neighbours_are_seen_and_it_is_not() -> None:
    pods = candidate(0, "10.0.0.1"), candidate(1, "10.0.0.2")
    for now in (NOW, NOW + 100 * JOIN_LIMIT):
        assert judged(*pods, now=now, members={"a": "10.0.0.1"}) == [Joining.JOINED, Joining.MISSING]


def test_a_client_id_with_the_pod_s_uid_tells_whose_it_is_wherever_it_comes_from() -> None:
    pods = candidate(0, "10.0.0.1"), candidate(1, "10.0.0.1")
    found = with_members(pods, {"172.17.0.1@5f1c-0001": {"172.17.0.1"}}, NOW, complete=True)
    assert [(pod.joining, pod.client_ids) for pod in found] == [
        (Joining.MISSING, ()),
        (Joining.JOINED, ("172.17.0.1@5f1c-0001",)),
    ]


def test_pods_that_share_an_address_are_counted() -> None:
    pods = [candidate(n, "192.168.0.5", "192.168.0.5") for n in range(2)]
    assert judged(*pods, members={"a": "192.168.0.5"}) == [Joining.AWAITED] * 2
    assert judged(*pods, members={"a": "192.168.0.5"}, now=NOW + JOIN_LIMIT) == [Joining.ASSUMED] * 2
    assert judged(*pods, members={"a": "192.168.0.5", "b": "192.168.0.5"}) == [Joining.JOINED] * 2


def test_members_behind_their_node_s_address_are_counted_by_node() -> None:
    pods = candidate(0, "10.0.0.1", "192.168.0.5"), candidate(1, "10.0.1.1", "192.168.0.6")
    assert judged(*pods, members={"a": "192.168.0.5"}) == [Joining.JOINED, Joining.AWAITED]
    assert judged(*pods, members={"a": "192.168.0.5", "b": "192.168.0.6"}) == [Joining.JOINED] * 2
    found = with_members(pods, {"a": {"192.168.0.5"}}, NOW, complete=True)
    assert found[0].client_ids == (), "anything on that node may come from there"


def test_processes_of_one_machine_are_counted() -> None:
    pods = [candidate(n, None) for n in range(2)]
    assert judged(*pods, members={}) == [Joining.AWAITED] * 2
    assert judged(*pods, members={"a": "127.0.0.1"}) == [Joining.AWAITED] * 2
    assert judged(*pods, members={"a": "127.0.0.1", "b": "192.168.0.5"}) == [Joining.JOINED] * 2


def test_where_it_cannot_be_known_a_pod_is_waited_for_and_then_taken_at_its_word() -> None:
    first, second = candidate(0, "10.0.0.1"), candidate(1, "10.0.0.2")
    cases: list[tuple[dict[str, str], bool]] = [
        ({}, True),  # the broker does not show this kind of member, or all are starting
        ({"a": "172.17.0.1"}, True),  # it sees addresses that are no pod's
        ({"a": "10.0.0.1"}, False),  # one of the brokers does not answer
        ({"a": "10.0.0.1", "guest": "10.9.9.9"}, True),  # the guest may be the second one
    ]
    for members, complete in cases:
        assert judged(first, second, complete=complete, members=members)[1] is Joining.AWAITED
        late = NOW + JOIN_LIMIT
        assert judged(first, second, complete=complete, now=late, members=members)[1] is Joining.ASSUMED


def test_pods_that_do_not_run_say_nothing_and_hold_no_address() -> None:
    ended = candidate(0, "10.0.0.1", phase=PodPhase.SUCCEEDED, ready=False)
    assert judged(ended, candidate(1, "10.0.0.1"), members={"a": "10.0.0.1"}) == [None, Joining.JOINED]
    assert judged(candidate(0, "10.0.0.1", ready=False), members={"a": "10.0.0.1"}) == [None]


addresses = st.sampled_from([None, "10.0.0.1", "10.0.0.2", "10.0.0.3", "192.168.0.5"])
pods = st.lists(st.tuples(addresses, addresses, st.booleans(), st.booleans()), max_size=5).map(
    lambda rows: [
        candidate(n, host, node, ready=ready, phase=PodPhase.SUCCEEDED if ended and not ready else PodPhase.RUNNING)
        for n, (host, node, ready, ended) in enumerate(rows)
    ]
)
members = st.dictionaries(
    st.sampled_from([*"abcdef", "x-5f1c-0000", "x-5f1c-0001"]),
    st.frozensets(st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3", "192.168.0.5", "172.17.0.1"]), min_size=1),
)


@given(pods, members, st.booleans(), st.sampled_from([0.0, JOIN_LIMIT - 1, JOIN_LIMIT, 1e6]))
def test_whatever_is_seen(
    given_pods: list[Candidate], hosts: dict[str, frozenset[str]], complete: bool, waited: float
) -> None:
    found = with_members(given_pods, hosts, NOW + waited, complete=complete)
    assert [pod.uid for pod in found] == [one.pod.uid for one in given_pods]
    ids = [one for pod in found for one in pod.client_ids]
    assert len(ids) == len(set(ids)), "a member is of one pod"
    assert set(ids) <= hosts.keys()
    counted = sum(pod.joining is Joining.JOINED for pod in found)
    assert counted <= len(hosts), "as many pods have joined as there are members at most"
    for one, pod in zip(given_pods, found, strict=True):
        assert not pod.ready or one.pod.ready, "nobody gets ready by this"
        assert not (one.pod.ready and pod.client_ids) or pod.joining is Joining.JOINED
        if waited >= JOIN_LIMIT and one.pod.ready and not pod.ready:
            assert pod.joining is Joining.MISSING, "only where it is certain a pod is waited for beyond its time"
            assert complete
            assert ids, "it is certain because others are recognised"


@given(pods, members, st.sampled_from([0.0, JOIN_LIMIT]))
def test_a_member_more_makes_nobody_unready_who_was_recognised(
    given_pods: list[Candidate], hosts: dict[str, frozenset[str]], waited: float
) -> None:
    before = with_members(given_pods, hosts, NOW + waited, complete=True)
    after = with_members(given_pods, hosts | {"one more": frozenset({"10.0.0.1"})}, NOW + waited, complete=True)
    for was, now in zip(before, after, strict=True):
        assert not was.client_ids or now.ready == was.ready
