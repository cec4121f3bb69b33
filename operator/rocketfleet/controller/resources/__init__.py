"""A group's objects in Kubernetes as plain data. Pure.

What all of them have is in `metadata.py`. Read `pod.py`, with `code.py`, `probes.py`, `pod_security.py` and
`executor_pod.py` for parts of a pod; beside pods stand `secret.py` and `disruption_budget.py`. Then
`worker_settings.py`, `revision.py` and `shared_settings.py` (what a change of the manifest means for pods).
"""
