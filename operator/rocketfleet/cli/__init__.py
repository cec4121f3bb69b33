"""`rocketfleet …`: one file a command. Installed as `kubectl-rocketfleet` too."""
