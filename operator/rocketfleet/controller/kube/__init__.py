"""Groups as pods: the backend on Kubernetes, and the operator around it."""
