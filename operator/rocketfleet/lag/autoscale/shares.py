"""Numbers of replicas that are worth having: those that leave the busiest member with fewer queues.

A queue belongs to one member, so a group is as quick as the member with the most queues. Of 8 queues, 5 members have
2, 2, 2, 1 and 1: no quicker than 4, and one pod dearer. So when n members are called for, that is when nobody should
have more than an n-th of the queues, the answer is the smallest number for which that is true: 4 for 3, 8 for 5. Exact
divisors alone would be too coarse: 13 queues go 1, 2, 3, 4, 5, 7, 13, each step with one queue less for the busiest.
"""


def even_step(queues: int | None, replicas: int, members_per_pod: int = 1) -> int:
    """The smallest number of replicas, from `replicas` up, that leaves no member more than an even share."""
    if not queues or replicas <= 0:
        return max(replicas, 0)
    share = max(1, queues // (replicas * members_per_pod))
    members = -(-queues // share)
    return max(1, -(-members // members_per_pod))


def step_below(queues: int | None, replicas: int, members_per_pod: int = 1) -> int:
    """The next smaller number that is worth having; 1 is the last."""
    for fewer in range(replicas - 1, 1, -1):
        if even_step(queues, fewer, members_per_pod) == fewer:
            return fewer
    return min(1, max(replicas, 0))
