"""What people and programs are told of a group: status, conditions, one word. Pure.

Read `status.py` and `conditions.py`; the others are one part each: `subscriptions.py`, `lag_health.py`,
`state_word.py`.
"""
