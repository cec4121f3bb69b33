"""The ConfigMaps with code, read by name now and then.

They are not watched: that would take the right to list every ConfigMap there is, and one of them changes seldom. An
edit is noticed when what was read is no longer believed and the group has its next pass: within a minute. If one cannot
be read, what was last known of it stays; an operator whose role does not allow it goes on without.
"""

import logging
from collections.abc import Callable

from rocketfleet.controller.kube.api import KubeApi, KubeError, path_of
from rocketfleet.controller.resources.code import Code, digest_of

_log = logging.getLogger(__name__)
FRESH = 25.0  # seconds that what was read is believed: less than the time between two passes over a group at rest
MISSING_FRESH = 3.0
MOST_KEPT = 10_000

Name = tuple[str, str]


class ConfigMaps:
    """ConfigMaps by namespace and name."""

    def __init__(self, api: KubeApi, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._kept: dict[Name, tuple[float, Code]] = {}
        self._refused: set[Name] = set()

    async def code(self, namespace: str, name: str) -> Code:
        """What is in it."""
        until, known = self._kept.get((namespace, name), (0.0, Code()))
        if self._clock() < until:
            return known
        try:
            raw = await self._api.get(path_of("v1", "configmaps", namespace, name))
        except KubeError as error:
            if error.not_found:
                sentence = f"the ConfigMap {name} with the code is not in namespace {namespace}: create it"
                return self._keep(namespace, name, Code(missing=sentence), MISSING_FRESH)
            self._warn(namespace, name, error)
            return self._keep(namespace, name, known, FRESH)
        self._refused.discard((namespace, name))
        content = {"data": raw.get("data") or {}, "binaryData": raw.get("binaryData") or {}}
        return self._keep(namespace, name, Code(digest_of(content)), FRESH)

    def _keep(self, namespace: str, name: str, code: Code, seconds: float) -> Code:
        self._kept[namespace, name] = (self._clock() + seconds, code)
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return code

    def _warn(self, namespace: str, name: str, error: KubeError) -> None:
        if (namespace, name) in self._refused:
            return
        self._refused.add((namespace, name))
        advice = " Give the operator's role the right to get configmaps." if error.status == 403 else ""
        _log.warning(
            "%s/%s: the ConfigMap cannot be read, so an edit of it is not rolled out: %s.%s",
            namespace,
            name,
            error,
            advice,
        )
