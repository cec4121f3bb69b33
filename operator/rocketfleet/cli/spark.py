"""`rocketfleet spark`: pipelines on Spark."""

from __future__ import annotations

import click

from rocketfleet.cli.spark_driver import driver
from rocketfleet.cli.spark_executor import executor
from rocketfleet.spark.submit import PipelineFailed, Submission


@click.group()
def spark() -> None:
    """Run pipelines on Spark, with the data source rocketmq."""


spark.add_command(driver)
spark.add_command(executor)


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.startswith("spark."):
            raise click.BadParameter(f"{text!r} is no setting: write spark.some.name=value", param_hint="--conf")
        settings[name] = value
    return settings


@spark.command(context_settings={"ignore_unknown_options": True})
@click.argument("pipeline", metavar="PIPELINE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--master", default="local[*]", show_default=True, help="local[N], spark://host:port or k8s://address.")
@click.option("--name", help="The application's name. Default: that of the pipeline.")
@click.option("--conf", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of Spark's. Repeatable.")
@click.option(
    "--ship/--no-ship",
    default=True,
    show_default=True,
    help="Send this package to the executors; not needed where their image has it, nor with local[N].",
)
@click.option(
    "--log-level",
    type=click.Choice(["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG"]),
    default="FATAL",
    show_default=True,
    help="How much of Spark's own log is shown.",
)
@click.option(
    "--drain-timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the batch under way may take to end once the driver is asked to.",
)
def submit(
    *,
    pipeline: str,
    arguments: tuple[str, ...],
    master: str,
    name: str | None,
    settings: tuple[str, ...],
    ship: bool,
    log_level: str,
    drain_timeout: float,
) -> None:
    """Run PIPELINE: module:function, or a file whose function `pipeline` it is (file.py, file.py:function).

    The function gets a SparkSession that knows the format rocketmq, and ARGUMENTS. Its streaming queries are waited
    for; SIGTERM ends them after the batch under way, with the group's offsets written back to the broker.

    Exit codes: 0 done, 1 failed with the sentence that is shown.
    """
    from rocketfleet.spark.pipeline_loading import PipelineError, load_pipeline
    from rocketfleet.spark.submit import run

    chosen = _settings(settings)
    try:
        import pyspark  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise click.ClickException("Spark is not installed: pip install 'rocketfleet[spark]'") from None
    submission = Submission(name or pipeline, master, chosen, log_level, ship, drain_timeout)
    try:
        run(load_pipeline(pipeline), arguments, submission, lambda words: click.echo(words, err=True))
    except (PipelineError, PipelineFailed) as error:
        raise click.ClickException(str(error)) from error
