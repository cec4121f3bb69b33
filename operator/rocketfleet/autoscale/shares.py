"""Numbers of replicas that are worth having: those that leave the busiest member with fewer queues.

A queue belongs to one member, so a group is as quick as the member with the most queues. Of 8 queues, 5 members have
2, 2, 2, 1 and 1: no quicker than 4, and one pod dearer. So only numbers count at which the busiest member has a queue
less than before: 1, 2, 3, 4 and 8 for 8 queues. Of those, the ones with nearly even shares are better (not 3, where two
members have half as much again as the third), as long as they are not too far up: 13 queues have no even shares between
2 and 7, and there 3, 4 and 5 are taken as they are.
"""

from functools import lru_cache

EVEN = 1.1  # the busiest member has no more than this, times an even share
WITHIN_REASON = 1.5  # an even step may be this many times what is called for


def even_step(queues: int | None, replicas: int, members_per_pod: int = 1) -> int:
    """The number to take when `replicas` are called for: as many, or somewhat more for even shares."""
    if not queues or replicas <= 0:
        return max(replicas, 0)
    steps, even = _steps(queues, members_per_pod)
    near = next((step for step in steps if step >= replicas), steps[-1])
    best = next((step for step in even if step >= replicas), steps[-1])
    return best if best <= WITHIN_REASON * replicas else near


def step_below(queues: int | None, replicas: int, members_per_pod: int = 1) -> int:
    """The next smaller number that is worth having; 1 is the last."""
    if not queues:
        return min(1, max(replicas, 0))
    _, even = _steps(queues, members_per_pod)
    return next((step for step in reversed(even) if step < replicas), min(1, max(replicas, 0)))


@lru_cache(maxsize=1024)
def _steps(queues: int, members_per_pod: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """All numbers of replicas worth having, and those of them with nearly even shares."""
    steps, even = [], []
    fewest = queues + 1
    for replicas in range(1, -(-queues // members_per_pod) + 1):
        members = min(replicas * members_per_pod, queues)
        most = -(-queues // members)
        if most < fewest:
            fewest = most
            steps.append(replicas)
            if most * members <= EVEN * queues or replicas == 1 or most == 1:
                even.append(replicas)
    return tuple(steps), tuple(even)
