"""A group's objects in Kubernetes as plain data. Pure.

Read `pod.py`; then `worker_settings.py`, `revision.py` and `shared_settings.py` (what a change of the manifest means
for pods).
"""
