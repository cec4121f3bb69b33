"""Running a pipeline on whatever master.

`submit.py`, `shipping.py`, `pipeline_loading.py`, `executor_pods.py`, `executor.py`.
"""
