"""One reconcile of one group: observe, plan, apply, report.

Read `reconcile.py`, `observe.py`, `apply.py`; `backend.py` is the interface to where pods live, `group_state.py`
what is remembered between two reconciles, `work_queue.py` whose turn it is.
"""
