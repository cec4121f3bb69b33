"""The history of lag → windows of queues, members and groups; DataFrame → DataFrame, the same in batch and stream.

Read `queue_windows.py`, `member_windows.py`, `group_windows.py`, then `patterns.py`; `reading.py`, `reference.py` and
`sizing.py` are where a history is, how it is read and in how many partitions.
"""
