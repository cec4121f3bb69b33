"""The operator's process: watches, leadership, health and metrics around one reconciler.

Read `operator.py`, `term.py` (while it leads), `group_pass.py`, `handlers.py` (kopf at the edge). Who leads:
`leader.py` by `lease.py`, and `rivals.py` if there are two by mistake. What is seen from outside: `health.py`,
`metrics.py`, `group_metrics.py`.
"""
