"""Groups as processes of this machine: the backend of `rocketfleet run`."""
