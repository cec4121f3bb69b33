"""What to do next, decided purely from what was observed.

Read `snapshot.py` (what there is), `actions.py` (what can be done), `plan.py`. Then one decision per file:
`wanted.py`, `update.py`, `drain.py`, `stuck.py`, `joining.py`, `claims.py`, `preparation.py`, `deletion.py`,
`rebalance_tracking.py`, `broker_trouble.py`.
"""
