"""Steps that are worth taking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.autoscale.shares import even_step, step_below


@pytest.mark.parametrize(
    ("queues", "steps"),
    [
        (8, [1, 2, 4, 8]),
        (12, [1, 2, 3, 4, 6, 12]),
        (13, [1, 2, 3, 4, 7, 13]),
        (10, [1, 2, 3, 5, 10]),
        (100, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 17, 20, 25, 34, 50, 100]),
        (1, [1]),
    ],
)
def test_the_steps_of_a_topic(queues: int, steps: list[int]) -> None:
    assert sorted({even_step(queues, n) for n in range(1, queues + 1)}) == steps


def test_processes_of_a_pod_are_members_each() -> None:
    # 24 queues on pods of 4 members: 3 pods have 12 members with 2 queues each.
    assert even_step(24, 3, 4) == 3
    assert even_step(24, 4, 4) == 6
    assert even_step(24, 2, 4) == 2


def test_without_queues_nothing_is_rounded() -> None:
    assert even_step(None, 5) == 5
    assert even_step(0, 5) == 5
    assert even_step(8, 0) == 0


@given(queues=st.integers(1, 500), replicas=st.integers(1, 200), members=st.integers(1, 8))
def test_a_step_is_no_less_than_called_for_and_every_pod_of_it_counts(queues: int, replicas: int, members: int) -> None:
    step = even_step(queues, replicas, members)
    most = -(-queues // members)  # pods beyond that would idle
    assert min(replicas, most) <= step <= most

    def busiest(pods: int) -> int:
        return -(-queues // min(pods * members, queues))

    assert step == 1 or busiest(step) < busiest(step - 1)
    assert busiest(step) <= busiest(min(replicas, most))
    assert step == 1 or even_step(queues, replicas - 1, members) <= step
    # Beyond 1.5 times, only where nothing nearer would leave the busiest a queue less.
    assert step <= 1.5 * replicas or busiest(step - 1) == busiest(replicas)


@given(queues=st.integers(1, 500), replicas=st.integers(0, 200), members=st.integers(1, 8))
def test_a_step_down_is_a_step(queues: int, replicas: int, members: int) -> None:
    below = step_below(queues, replicas, members)
    assert below < replicas or replicas <= 1
    assert below <= 1 or even_step(queues, below, members) == below
