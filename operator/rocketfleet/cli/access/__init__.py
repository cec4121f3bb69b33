"""From what was typed to a cluster, a group and its brokers: connections, kubeconfig, manifests, names."""
