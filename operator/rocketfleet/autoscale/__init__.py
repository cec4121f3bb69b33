"""How many replicas a group should have, decided from the history of its lag. Pure: no clock, no IO.

`decide(policy, history, now)` in decide.py is all that others call; its theory is there.
"""
