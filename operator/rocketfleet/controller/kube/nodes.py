"""What is known of nodes, asked one by one and only when a pod should have ended: the right to `get` is all it takes.

An operator that was installed for some namespaces only has no right to Nodes, which belong to none.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rocketfleet.controller.kube.api import KubeApi, KubeError, path_of
from rocketfleet.controller.planning.snapshot import NodeState

FRESH = 3.0  # seconds for which an answer is believed
REFUSED_FRESH = 60.0
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def state_of(raw: Mapping[str, Any]) -> NodeState:
    """A Node's JSON."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    if any(taint.get("key") == OUT_OF_SERVICE for taint in spec.get("taints") or ()):
        return NodeState.OUT_OF_SERVICE
    conditions = status.get("conditions") or ()
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return NodeState.ANSWERS if ready else NodeState.SILENT


class Nodes:
    """Nodes by name."""

    def __init__(self, api: KubeApi, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[float, NodeState]] = {}  # until when

    async def states(self, names: Collection[str]) -> dict[str, NodeState]:
        """Those of which something can be said."""
        now = self._clock()
        self._known = {name: known for name, known in self._known.items() if now < known[0]}
        await asyncio.gather(*(self._ask(name) for name in set(names) - self._known.keys()))
        return {name: self._known[name][1] for name in names if name in self._known}

    async def _ask(self, name: str) -> None:
        fresh = FRESH
        try:
            state = state_of(await self._api.get(path_of("v1", "nodes", None, name)))
        except KubeError as error:
            if error.not_found:
                state = NodeState.GONE
            elif error.status in (401, 403):
                state, fresh = NodeState.HIDDEN, REFUSED_FRESH
            else:
                return  # no answer is no news
        self._known[name] = (self._clock() + fresh, state)
