"""How many groups roll at once when all of them have to: an operator with a new default image.

Each group rolls one pod at a time, but hundreds of groups together would have every broker share out queues anew and
every node pull images. So groups that run the default image take turns: so many hold a place, from the first of their
pods with another image to the last, and until one with the new image is ready: with one replica, nothing else tells
whether that image works. An edit of a manifest waits for nobody: ten groups whose new handlers do not start
must not keep all others from being edited. What the place's holder cannot help frees it: a group whose brokers are
away, or that is suspended, is not counted. A roll that gets stuck keeps its place: then so many groups have got a bad
image, and no more.

An operator that begins to lead knows no places; a group with pods of both revisions has begun, and gets one anyway. So
each change of leaders lets up to as many groups more begin beside those that are stuck.
"""

from collections.abc import Iterable

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.controller.planning.snapshot import Pod

MOST_ROLLING = 10


def has_other_image(pods: Iterable[Pod], image: str) -> bool:
    """Whether one of the pods that run was made with another image than it would be now."""
    return any(pod.image not in (None, image) for pod in pods if not pod.ended)


class RollingBudget:
    """The places. 0: as many as there are groups. They are counted over all groups: no group's state has them."""

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._holders: set[GroupKey] = set()

    def may_roll(self, key: GroupKey, counts: bool, image: str, revision: str, pods: Iterable[Pod]) -> bool:
        """Whether this group may replace pods of an old revision now. `counts`: it is one of those that take turns.
        `image`: what its pods should run.
        """
        there = [pod for pod in pods if not pod.ended]
        if not counts or not self._most:
            self._holders.discard(key)
            return True
        if not has_other_image(there, image):
            if any(pod.ready and not pod.leaving for pod in there):
                self._holders.discard(key)
            return True
        begun = any(pod.revision == revision or pod.drain is not None for pod in there)
        if key in self._holders or begun or len(self._holders) < self._most:
            self._holders.add(key)
            return True
        return False

    def forget(self, key: GroupKey) -> None:
        self._holders.discard(key)
