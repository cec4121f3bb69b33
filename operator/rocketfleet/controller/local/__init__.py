"""Groups as processes of this machine: the backend of `rocketfleet run`.

Read `run.py`, which puts it together, and `backend.py`. What Kubernetes would do is done by `objects.py` (an API server
for one kind), `member.py` (the kubelet, for one pod), `command.py` (the container) and `process.py`. `manifests.py` and
`secrets.py` read what people write, `files.py` keeps it all on disk.
"""
