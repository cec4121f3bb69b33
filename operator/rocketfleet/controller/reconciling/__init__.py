"""One reconcile of one group: observe, plan, apply, report.

Read `reconcile.py`, `observe.py`, `apply.py`; `backend.py` is the interface to where pods live, `worker_calls.py` that
to workers, `group_state.py` what is remembered between two reconciles (with `sightings.py`: since when),
`work_queue.py` whose turn it is. Limits: `slow_start.py` for creations, `rolling_budget.py` for updates of many
groups.
"""
