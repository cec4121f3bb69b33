"""Several worker processes under one parent: an interpreter uses one core, and a pod may have more.

Read `parent.py`, then `child.py` and `lifeline.py`; `merging.py` and `merged_metrics.py` make one answer of several.
"""
