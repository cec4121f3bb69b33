"""Several worker processes under one parent: an interpreter uses one core, and a pod may have more.

Read `parent.py`, then `child.py`, `lifeline.py` and `restarts.py`; `merging.py` and `merged_metrics.py` make one answer
of several.
"""
