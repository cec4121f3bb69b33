"""Moments of others on a clock of our own: when we first saw what they tell of.

Kubernetes' times are the API server's, a node's, or another operator's, and any of these clocks may be wrong; so may
ours be against theirs. What is decided by elapsed time (a drain or a deletion has had its time, a node has been silent
for long enough) counts from when this operator first saw it, by a clock that nobody sets. An operator that starts anew
counts anew: it waits too long rather than not long enough.

How old a pod is, and for how long it has been ready, is told by others where we were not there to see it: at the first
look after a start. Nothing that could hurt depends on that.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

from rocketfleet.controller.planning.snapshot import NodeState, Pod

OBJECT = "object"  # in place of a pod's uid


@dataclass(slots=True)
class Sightings:
    """What was first seen when."""

    _first: dict[tuple[str, Hashable], float] = field(default_factory=dict)
    _begun: bool = False

    def copy(self) -> "Sightings":
        return replace(self, _first=dict(self._first))

    def since(self, uid: str, what: Hashable, now: float) -> float:
        """When this was first seen."""
        return self._first.setdefault((uid, what), now)

    def pod(self, pod: Pod, now: float, wall: float) -> Pod:
        """The pod with our own moments. `wall` is our idea of the clock that its own moments are from."""

        def told(what: str, moment: float) -> float:
            age = 0.0 if self._begun else max(0.0, wall - moment)
            return self._first.setdefault((pod.uid, (what, moment)), now - age)

        deleting, deleting_since = pod.deleting, pod.deleting_since
        if deleting is not None and deleting_since is not None:
            grace = max(0.0, deleting - deleting_since)
            deleting_since = self.since(pod.uid, "deleting", now)
            deleting = deleting_since + grace
        drain = pod.drain
        if drain is not None:
            drain = replace(drain, since=self.since(pod.uid, "drain", now))
        return replace(
            pod,
            created=told("created", pod.created),
            ready_since=None if pod.ready_since is None else told("ready", pod.ready_since),
            starting_since=None if pod.starting_since is None else told("starting", pod.starting_since),
            deleting=deleting,
            deleting_since=deleting_since,
            drain=drain,
        )

    def node(self, pod: Pod, state: NodeState | None, now: float) -> Pod:
        """The pod with the state that its node is in, and since when we have seen it so without a break."""
        for other in NodeState:
            if other is not state:
                self._first.pop((pod.uid, other), None)
        if state is None:
            return pod
        return replace(pod, node_state=state, node_since=self.since(pod.uid, state, now))

    def keep(self, uids: Iterable[str]) -> None:
        """A look is over: let go of what was noted of pods that are no more."""
        present = {*uids, OBJECT}
        self._first = {key: moment for key, moment in self._first.items() if key[0] in present}
        self._begun = True
