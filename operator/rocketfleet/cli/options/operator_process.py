"""The options of `rocketfleet operator`, in groups: what each says becomes one part of the operator's settings."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketfleet.cli.access.connection import ConnectionOptions
from rocketfleet.cli.options.option_group import option_group
from rocketfleet.client.variables import ACCESS_KEY_VARIABLE, SECRET_KEY_VARIABLE

if TYPE_CHECKING:
    from rocketfleet.control.logs import LogFormat
    from rocketfleet.controller.operator.leader import LeaseTimes
    from rocketfleet.controller.operator.term import LagOptions
    from rocketfleet.controller.resources.pod import Defaults

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    """Names, also several in one text, as they come from the environment."""
    return tuple(" ".join(given).replace(";", " ").replace(",", " ").split())


def own_namespace() -> str:
    """Where this process runs, as far as that can be told."""
    if "POD_NAMESPACE" in os.environ:
        return os.environ["POD_NAMESPACE"]
    try:
        return _OWN_NAMESPACE.read_text().strip() or "default"
    except OSError:
        return "default"


# -- which ConsumerGroups are looked after ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ScopeOptions:
    namespaces: tuple[str, ...]
    operator_class: str
    allowed_name_servers: tuple[str, ...]

    def check(self) -> None:
        from rocketfleet.api.spec import OPERATOR_CLASS
        from rocketfleet.controller.rocketmq.allowed_hosts import allowed_hosts

        if self.operator_class and not re.match(OPERATOR_CLASS, self.operator_class):
            raise click.ClickException(
                f"--operator-class: no ConsumerGroup can have the class {self.operator_class!r}: write small letters, "
                "digits, '-' and '.'"
            )
        if self.allowed_name_servers and not _names(self.allowed_name_servers):
            raise click.ClickException("--allowed-name-servers is empty, which would allow all: leave it out if so")
        try:
            allowed_hosts(_names(self.allowed_name_servers))
        except ValueError as error:
            raise click.ClickException(f"--allowed-name-servers: {error}") from error

    @property
    def namespace_names(self) -> tuple[str, ...]:
        return _names(self.namespaces)

    @property
    def name_server_hosts(self) -> tuple[str, ...]:
        return _names(self.allowed_name_servers)


scope_options = option_group(
    "scope",
    ScopeOptions,
    click.option(
        "--namespace",
        "namespaces",
        multiple=True,
        envvar="ROCKETFLEET_NAMESPACES",
        help="A namespace to look after. Repeatable; none: all of them, which takes cluster-wide rights.",
    ),
    click.option(
        "--operator-class",
        default="",
        envvar="ROCKETFLEET_OPERATOR_CLASS",
        metavar="CLASS",
        help="Look after ConsumerGroups with this spec.operatorClass only.  [those without one]",
    ),
    click.option(
        "--allowed-name-servers",
        multiple=True,
        envvar="ROCKETFLEET_ALLOWED_NAME_SERVERS",
        metavar="HOST|.SUFFIX|NETWORK",
        help="A name server that ConsumerGroups may name: a host, a suffix with a dot in front, an address or a "
        "network such as 10.0.0.0/8. Repeatable; none: all but link-local and loopback addresses and the API server.",
    ),
)


# -- the pods of groups whose manifest does not say otherwise ---------------------------------------------------------


@dataclass(frozen=True)
class PodOptions:
    worker_image: str
    spark_image: str
    spark_service_account: str
    image_pull_policy: str | None
    image_pull_secrets: tuple[str, ...]
    max_rolling_groups: int

    def defaults(self) -> Defaults:
        from rocketfleet.controller.resources.pod import Defaults

        return Defaults(
            worker_image=self.worker_image,
            spark_image=self.spark_image,
            spark_service_account=self.spark_service_account,
            image_pull_policy=self.image_pull_policy,
            image_pull_secrets=_names(self.image_pull_secrets),
            most_rolling=self.max_rolling_groups,
        )


pod_options = option_group(
    "pods",
    PodOptions,
    click.option(
        "--worker-image",
        required=True,
        envvar="ROCKETFLEET_WORKER_IMAGE",
        help="The image of workers whose ConsumerGroup names none.",
    ),
    click.option(
        "--spark-image",
        default="",
        envvar="ROCKETFLEET_SPARK_IMAGE",
        help="The image of Spark drivers and their executors, whose ConsumerGroup names none.",
    ),
    click.option(
        "--spark-service-account",
        default="",
        envvar="ROCKETFLEET_SPARK_SERVICE_ACCOUNT",
        help="The service account of Spark drivers with executors in pods (master k8s), in the namespace of their "
        "group.",
    ),
    click.option(
        "--image-pull-policy",
        type=click.Choice(["Always", "IfNotPresent", "Never"]),
        envvar="ROCKETFLEET_IMAGE_PULL_POLICY",
        help="For the consuming container, where a template does not say.  [the cluster's default]",
    ),
    click.option(
        "--image-pull-secret",
        "image_pull_secrets",
        multiple=True,
        envvar="ROCKETFLEET_IMAGE_PULL_SECRETS",
        help="A Secret for pulling images, in the namespace of the pods. Repeatable.",
    ),
    click.option(
        "--max-rolling-groups",
        type=click.IntRange(min=0),
        default=10,
        show_default=True,
        envvar="ROCKETFLEET_MAX_ROLLING_GROUPS",
        help="ConsumerGroups on a default image that are moved to another one at the same time; 0: all at once.",
    ),
)


# -- the Lease by which one of several leads --------------------------------------------------------------------------


@dataclass(frozen=True)
class LeaseOptions:
    lease_name: str
    lease_namespace: str | None
    lease_duration: float
    renew_deadline: float
    retry_period: float

    @property
    def namespace(self) -> str:
        return self.lease_namespace or own_namespace()

    def times(self) -> LeaseTimes:
        from rocketfleet.controller.operator.leader import LeaseTimes

        try:
            return LeaseTimes(self.lease_duration, self.renew_deadline, self.retry_period)
        except ValueError as error:
            raise click.ClickException(str(error)) from error


lease_options = option_group(
    "lease",
    LeaseOptions,
    click.option(
        "--lease-name",
        default="rocketfleet",
        show_default=True,
        envvar="ROCKETFLEET_LEASE_NAME",
        help="The Lease by which one of several operators leads.",
    ),
    click.option(
        "--lease-namespace",
        envvar="ROCKETFLEET_LEASE_NAMESPACE",
        help="Namespace of the Lease.  [the operator's own, else default]",
    ),
    click.option(
        "--lease-duration",
        type=float,
        default=15.0,
        show_default=True,
        envvar="ROCKETFLEET_LEASE_DURATION",
        metavar="SECONDS",
        help="A leader that disappears is replaced after this time.",
    ),
    click.option(
        "--renew-deadline",
        type=float,
        default=10.0,
        show_default=True,
        envvar="ROCKETFLEET_RENEW_DEADLINE",
        metavar="SECONDS",
        help="A leader that could not renew its Lease for this long stops acting.",
    ),
    click.option(
        "--retry-period",
        type=float,
        default=2.0,
        show_default=True,
        envvar="ROCKETFLEET_RETRY_PERIOD",
        metavar="SECONDS",
        help="Time between two renewals of the Lease.",
    ),
)


# -- the process itself -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProcessOptions:
    workers: int
    bind: str
    port: int
    kube_api_qps: float
    kube_api_burst: int
    log_format: LogFormat
    log_level: str


process_options = option_group(
    "process",
    ProcessOptions,
    click.option(
        "--workers",
        type=click.IntRange(1, 256),
        default=16,
        show_default=True,
        envvar="ROCKETFLEET_WORKERS",
        help="ConsumerGroups that are worked on at the same time.",
    ),
    click.option(
        "--bind",
        default="127.0.0.1",
        show_default=True,
        envvar="ROCKETFLEET_BIND",
        help="Address for /healthz, /readyz and /metrics; 0.0.0.0 or ::, as in a pod: every address, IPv6 and IPv4.",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8080,
        show_default=True,
        envvar="ROCKETFLEET_BIND_PORT",
        help="Port of the health and metrics server; 0 picks a free one.",
    ),
    click.option(
        "--kube-api-qps",
        type=click.FloatRange(1, 10_000),
        default=100.0,
        show_default=True,
        envvar="ROCKETFLEET_KUBE_API_QPS",
        help="Calls to the Kubernetes API, per second. Those to the Lease are not counted.",
    ),
    click.option(
        "--kube-api-burst",
        type=click.IntRange(1, 100_000),
        default=200,
        show_default=True,
        envvar="ROCKETFLEET_KUBE_API_BURST",
        help="Maximum burst of calls to the Kubernetes API.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        envvar="ROCKETFLEET_LOG_FORMAT",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        envvar="ROCKETFLEET_LOG_LEVEL",
    ),
)


# -- the lag that is watched, and kept --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LagWatchOptions:
    lag_interval: float
    lag_per_queue: bool
    lag_history_topic: str | None
    lag_history_name_server: str | None
    lag_history_tls: bool
    lag_history_ca_file: Path | None
    lag_history_dir: Path | None
    lag_history_mib: int
    lag_history_every: float

    def settings(self) -> LagOptions:
        from rocketfleet.controller.operator.term import LagOptions
        from rocketfleet.lag.samples.sinks import HistoryOptions

        cluster = self._cluster(self.lag_history_name_server) if self.lag_history_name_server else None
        history = HistoryOptions(
            every=self.lag_history_every,
            topic=self.lag_history_topic or None,
            cluster=None if cluster is None else cluster.config(),
            directory=self.lag_history_dir,
            directory_mib=self.lag_history_mib,
        )
        hindrance = history.hindrance()
        if hindrance is not None:
            raise click.ClickException(hindrance)
        return LagOptions(interval=self.lag_interval, per_queue=self.lag_per_queue, history=history)

    def _cluster(self, name_server: str) -> ConnectionOptions:
        """The RocketMQ that keeps the history."""
        return ConnectionOptions(
            name_server=name_server,
            credentials_file=None,
            tls=self.lag_history_tls,
            ca_file=self.lag_history_ca_file,
            cert_file=None,
            key_file=None,
            server_name=None,
            check_hostname=True,
            timeout=3.0,
        )


lag_options = option_group(
    "lag",
    LagWatchOptions,
    click.option(
        "--lag-interval",
        type=click.FloatRange(1, 600),
        default=15.0,
        show_default=True,
        envvar="ROCKETFLEET_LAG_INTERVAL",
        metavar="SECONDS",
        help="Seconds between sweeps of the lag of all groups.",
    ),
    click.option(
        "--lag-per-queue/--no-lag-per-queue",
        default=True,
        show_default=True,
        envvar="ROCKETFLEET_LAG_PER_QUEUE",
        help="Whether metrics show every queue.",
    ),
    click.option(
        "--lag-history-topic",
        envvar="ROCKETFLEET_LAG_HISTORY_TOPIC",
        metavar="TOPIC",
        help="Keep samples of lag in this topic, which has to exist.",
    ),
    click.option(
        "--lag-history-name-server",
        envvar="ROCKETFLEET_LAG_HISTORY_NAME_SERVER",
        metavar="HOST:PORT",
        help="Name servers of that topic's cluster, several with a semicolon. Credentials: "
        f"[env: {ACCESS_KEY_VARIABLE}, {SECRET_KEY_VARIABLE}]",
    ),
    click.option(
        "--lag-history-tls",
        is_flag=True,
        envvar="ROCKETFLEET_LAG_HISTORY_TLS",
        help="Use TLS for that cluster.",
    ),
    click.option(
        "--lag-history-ca-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="ROCKETFLEET_LAG_HISTORY_CA_FILE",
        metavar="FILE",
        help="Use TLS, and trust certificates signed by these authorities.",
    ),
    click.option(
        "--lag-history-dir",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="ROCKETFLEET_LAG_HISTORY_DIR",
        metavar="DIRECTORY",
        help="Keep samples of lag as Parquet files here.",
    ),
    click.option(
        "--lag-history-mib",
        type=click.IntRange(1, 1024**2),
        default=512,
        show_default=True,
        envvar="ROCKETFLEET_LAG_HISTORY_MIB",
        metavar="MIB",
        help="Maximum size of those files in MiB; the oldest are deleted first.",
    ),
    click.option(
        "--lag-history-every",
        type=click.FloatRange(1, 86_400),
        default=60.0,
        show_default=True,
        envvar="ROCKETFLEET_LAG_HISTORY_EVERY",
        metavar="SECONDS",
        help="Seconds between samples of a queue.",
    ),
)
