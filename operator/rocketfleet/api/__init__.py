"""The custom resource as models: the one source of crds/, of what `rocketfleet run` reads, and of what the controller
writes to a status.
"""
