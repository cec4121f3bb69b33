"""`helm test`: is the resource served and validated here, and is an operator ready? Runs in the operator's image.

Nothing is changed: both manifests are sent as dry runs.
"""

import os
import sys
import time
import urllib.error
import urllib.request

import yaml
from kubernetes import client, config

PATIENCE = 60.0
GOOD = """
apiVersion: rocketfleet.io/v1alpha1
kind: ConsumerGroup
metadata: {name: helm-test}
spec:
  cluster: {nameServers: ["rocketmq-namesrv:9876"]}
  subscriptions: [{topic: orders}]
  replicas: 1
  worker: {handler: "orders:handle"}
"""
WRONG = GOOD.replace("replicas: 1", "replicas: -1")


def ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - a Service of this release
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def apply(manifest: str, namespace: str) -> client.ApiException | None:
    """Send it as a dry run; the error, if it is refused."""
    api = client.CustomObjectsApi()
    try:
        api.create_namespaced_custom_object(
            "rocketfleet.io", "v1alpha1", namespace, "consumergroups", yaml.safe_load(manifest), dry_run="All"
        )
    except client.ApiException as error:
        return error
    return None


def main() -> None:
    config.load_incluster_config()
    url, namespace = os.environ["READY_URL"], os.environ["POD_NAMESPACE"]
    deadline = time.monotonic() + PATIENCE
    while not ready(url):
        if time.monotonic() > deadline:
            sys.exit(f"no operator was ready within {PATIENCE:.0f} s: {url} does not answer 200")
        time.sleep(1)
    print("ok: an operator is ready")  # noqa: T201
    error = apply(GOOD, namespace)
    if error is not None:
        sys.exit(f"a correct ConsumerGroup was refused with {error.status}: {error.body}")
    print("ok: a ConsumerGroup is accepted")  # noqa: T201
    error = apply(WRONG, namespace)
    if error is None or error.status != 422:
        sys.exit("a ConsumerGroup with replicas: -1 was not refused: the definition in this cluster is not ours")
    print("ok: a wrong one is refused")  # noqa: T201


main()
