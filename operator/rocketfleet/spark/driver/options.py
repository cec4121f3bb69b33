"""The group's settings as options of the data source: what a query of its own would say, said once and for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rocketfleet.client.variables import (
    ACCESS_KEY_VARIABLE,
    KEY_PASSWORD_VARIABLE,
    SECRET_KEY_VARIABLE,
    SECURITY_TOKEN_VARIABLE,
)
from rocketfleet.spark.driver.settings import KUBERNETES
from rocketfleet.spark.source.offsets import Offsets, nested

if TYPE_CHECKING:
    from rocketfleet.client.config import ClientConfig
    from rocketfleet.spark.driver.settings import DriverSettings


def read_options(settings: DriverSettings, config: ClientConfig, start: Offsets) -> dict[str, str]:
    """The options of the streaming read. Secrets are not among them: they come by the environment.

    The source does not write offsets back: the driver does, because it knows when a batch is done without having to
    wait for the next. Messages that retention has deleted are passed over, as a worker does it, and counted.
    """
    options = {
        "nameServers": ";".join(config.name_servers),
        "topic": ",".join(settings.topics),
        "group": settings.group,
        "subExpression": settings.expression,
        "startingOffsets": json.dumps(nested(start), separators=(",", ":")),
        "pullBatchSize": str(settings.consumer.pull_batch_size),
        "commitOffsets": "false",
        "failOnDataLoss": "false",
        "timeout": str(max(1, round(config.timeout))),
    }
    if settings.spark.max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(settings.spark.max_offsets_per_trigger)
    if follows_keys(settings, config):
        options["credentialsPath"] = str(config.credentials_path)
    tls = config.tls
    if tls is not None:
        options["tls"] = "true"
        options["checkHostname"] = "true" if tls.check_hostname else "false"
        files = (
            ("caFile", tls.ca_file),
            ("certFile", tls.cert_file),
            ("keyFile", tls.key_file),
            ("tlsServerName", tls.server_name),
        )
        options |= {name: value for name, value in files if value}
    return options


def follows_keys(settings: DriverSettings, config: ClientConfig) -> bool:
    """Whether those who read have the file with the credentials too, and can follow it: our own executors have it where
    the driver has it, those of a standalone cluster do not.
    """
    return config.credentials_path is not None and (settings.spark.is_local or settings.spark.master == KUBERNETES)


def secrets_of(settings: DriverSettings, config: ClientConfig) -> dict[str, str]:
    """The variables by which the source gets what no option should hold."""
    variables: dict[str, str] = {}
    if config.credentials is not None and not follows_keys(settings, config):
        variables[ACCESS_KEY_VARIABLE] = config.credentials.access_key
        variables[SECRET_KEY_VARIABLE] = config.credentials.secret_key
        if config.credentials.security_token:
            variables[SECURITY_TOKEN_VARIABLE] = config.credentials.security_token
    if config.tls is not None and config.tls.key_password:
        variables[KEY_PASSWORD_VARIABLE] = config.tls.key_password
    return variables
