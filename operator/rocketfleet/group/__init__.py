"""One consumer group at its brokers: what is stored of it there, who is in it, and how its offsets are moved.

Read `at_brokers.py`; then `offset_change.py` (pure) and `commit_interval.py`.
"""
