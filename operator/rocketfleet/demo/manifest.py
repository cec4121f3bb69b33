"""The demo's one manifest, as a person would write it. To scale is to write it again with another number."""

from pathlib import Path

TOPIC, GROUP = "demo-orders", "demo"

_TEMPLATE = """\
apiVersion: rocketfleet.io/v1alpha1
kind: ConsumerGroup
metadata:
  name: {group}
spec:
  cluster:
    nameServers: ["{name_server}"]
  subscriptions:
    - topic: {topic}
  consumeMode: Orderly
  consumeFromWhere: FirstOffset
  replicas: {replicas}
  worker:
    handler: rocketfleet.demo.handler:handle
  deletionPolicy: DeleteAll
  template:
    spec:
      containers:
        - name: consumer
          env:
            - name: ROCKETFLEET_DEMO_RECORD
              value: "{record}"
"""


def write(path: Path, *, name_server: str, record: Path, replicas: int) -> None:
    """Write the manifest with so many replicas."""
    path.write_text(
        _TEMPLATE.format(group=GROUP, topic=TOPIC, name_server=name_server, record=record, replicas=replicas)
    )
