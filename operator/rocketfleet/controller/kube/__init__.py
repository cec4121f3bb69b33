"""Groups as pods: the backend on Kubernetes.

Read `backend.py`; then what it knows of the cluster: `view.py` on `cache.py`, made of objects by `pod.py`; and how it
asks and writes: `api.py`, at the rate of `pace.py`. One file each for what else a group has or needs: `budgets.py`,
`secrets.py`, `config_maps.py`, `nodes.py`, `events.py`.
"""
