"""The names by which Kubernetes knows our objects, and what is written on them. Without models, so that a command can
have them without the packages of the operator.
"""

GROUP = "rocketfleet.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ConsumerGroup"
PLURAL = "consumergroups"
FINALIZER = f"{GROUP}/drain"

# annotations of a group
REBALANCE_REQUESTED = f"{GROUP}/rebalance-requested"  # when it changes, the members are told
OFFSETS_MOVED = f"{GROUP}/offsets-moved"  # when it changes, what the lag was before counts no more
RECOMMENDED_REPLICAS = f"{GROUP}/recommended-replicas"  # autoscaling goes no lower, within its limits

# labels and annotations of a pod
GROUP_LABEL = f"{GROUP}/group"
ORDINAL_LABEL = f"{GROUP}/ordinal"
DRAIN_ANNOTATION = f"{GROUP}/drain"
