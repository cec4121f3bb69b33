"""What runs in an executor's pod: Spark's own executor, started as Spark's images do it, without their shell script.

Spark's scheduler makes the pod from the template that the driver was given and adds the argument `executor`; the
template's command is `rocketfleet spark`, so the two together are this. Everything else comes by the environment.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BACKEND: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION: Final = "SPARK_JAVA_OPT_"
_ARGUMENTS: Final = (
    ("--driver-url", "SPARK_DRIVER_URL"),
    ("--executor-id", "SPARK_EXECUTOR_ID"),
    ("--cores", "SPARK_EXECUTOR_CORES"),
    ("--app-id", "SPARK_APPLICATION_ID"),
    ("--hostname", "SPARK_EXECUTOR_POD_IP"),
    ("--resourceProfileId", "SPARK_RESOURCE_PROFILE_ID"),
    ("--podName", "SPARK_EXECUTOR_POD_NAME"),
)


class NotInAPod(ValueError):
    """A variable is missing that Spark's scheduler sets."""


def command(environment: Mapping[str, str], spark_home: Path) -> list[str]:
    """The executor's command line."""
    missing = [name for _, name in (*_ARGUMENTS, ("", "SPARK_EXECUTOR_MEMORY")) if name not in environment]
    if missing:
        raise NotInAPod(
            f"{', '.join(missing)} are not set: this command is for pods that Spark's Kubernetes scheduler makes"
        )
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    before, after = environment.get("SPARK_CLASSPATH"), environment.get("SPARK_EXTRA_CLASSPATH")
    classpath = [*filter(None, (before, f"{spark_home}/jars/*", after))]
    return [
        _java(environment),
        *_java_options(environment),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(classpath),
        BACKEND,
        *(part for option, name in _ARGUMENTS for part in (option, environment[name])),
    ]


def _java(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH")) or "java"


def _java_options(environment: Mapping[str, str]) -> list[str]:
    """SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, … in the order of their numbers."""
    found = {
        int(name.removeprefix(_JAVA_OPTION)): value
        for name, value in environment.items()
        if name.startswith(_JAVA_OPTION) and name.removeprefix(_JAVA_OPTION).isdigit()
    }
    return [found[number] for number in sorted(found)]
