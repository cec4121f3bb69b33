"""The operator's process: watches, leadership, health and metrics around one reconciler.

Read `operator.py`, `term.py` (while it leads), `group_pass.py`, `handlers.py` (kopf at the edge), `leader.py`.
"""
