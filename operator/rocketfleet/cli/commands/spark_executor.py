"""`rocketfleet spark executor`: what runs in the pods that Spark's Kubernetes scheduler makes for a driver."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command(hidden=True)
def executor() -> None:
    """Run a Spark executor. Started by Spark's Kubernetes scheduler, which sets the environment it needs."""
    from rocketfleet.spark.submitting.executor import NotInAPod, command

    try:
        import pyspark
    except ModuleNotFoundError:
        raise click.ClickException(
            "Spark is not installed: in a checkout of Rocketfleet, pip install '.[spark]'"
        ) from None
    try:
        argv = command(os.environ, Path(pyspark.__file__).parent)
        os.execvp(argv[0], argv)  # noqa: S606 - this process becomes Java
    except NotInAPod as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{argv[0]} cannot be started: {error.strerror}") from error
