"""A consumer group of real worker processes under a user's test: its traffic, its faults, its record.

In the order to read: `handler_place.py` and `recorded_worker.py` are how the user's handler gets into a worker,
`worker_under_test.py` is one process, `group_sight.py` looks at the group from outside, `group_traffic.py` sends, and
`worker_group.py` is what a test holds in its hands.
"""
