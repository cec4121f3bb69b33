"""Who may touch a queue: the handover protocol and the shell around it.

Read `ownership.py` first: the protocol as two tables. Then `roster.py` (who is a member) and `rebalance.py`: pure.
The shell: `holdings.py` (the queues of this member), `lock_keeper.py`, `membership.py`, `rebalancer.py`,
`peer_watch.py`, `predecessors.py` (members that died on this host).
"""
