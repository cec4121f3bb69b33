"""From what was typed to a cluster, a group and its brokers.

Read `connection.py` (to RocketMQ), `kube_access.py` (to Kubernetes), then `group_access.py` (a name → a group at its
brokers), which uses `manifest_file.py` and `group_by_name.py`. For some commands only: `lag_reading.py`,
`replica_floors.py`, `in_cluster_command.py`.
"""
