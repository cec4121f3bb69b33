"""RocketMQ consumer groups on Kubernetes.

Read the packages from the bottom up: wire, client, allocation, producer, then what stands on them. DESIGN.md has the map.
"""
