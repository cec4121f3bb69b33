"""How many replicas a group should have, decided from the history of its lag. Pure: no clock, no IO.

`decide(policy, history, now)` in `decide.py` is all that others call; its theory is there. Then `policy.py` and
`history.py` (what it is decided from), `demand.py` (what one stretch calls for), `shares.py` (numbers that share out
evenly) and `wording.py` (the decision in a sentence).
"""
