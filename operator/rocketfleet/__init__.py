"""RocketMQ consumer groups on Kubernetes.

Read the packages from the bottom up: wire, client, allocation, producer, consumer. DESIGN.md has the map.
"""
