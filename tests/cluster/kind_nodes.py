"""What only somebody at the machine can do to a node: stop it, or kill a process on it without a word.

`kubectl delete --force` is not that: the kubelet still sends SIGTERM first, and a program uses the second it gets.
"""

import subprocess

from tests.cluster.kube import Manifest


def kill_node(node: str) -> None:
    """As if its power had failed."""
    _docker("kill", node)


def start_node(node: str) -> None:
    _docker("start", node)


def kill_container(pod: Manifest) -> None:
    """SIGKILL for process 1 of a pod's only container."""
    container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    _docker("exec", pod["spec"]["nodeName"], "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", container)


def _docker(*arguments: str) -> None:
    answer = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, f"docker {' '.join(arguments)}: {answer.stderr}"
