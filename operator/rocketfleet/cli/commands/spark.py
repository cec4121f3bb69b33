"""`rocketfleet spark`: pipelines on Spark, and the lag analytics."""

from __future__ import annotations

from pathlib import Path

import click

from rocketfleet.cli.commands.spark_driver import driver
from rocketfleet.cli.commands.spark_executor import executor
from rocketfleet.cli.commands.spark_recommend import recommend
from rocketfleet.cli.commands.spark_report import report
from rocketfleet.cli.options.spark_master import SparkOptions, spark_options
from rocketfleet.spark.submitting.submit import PipelineFailed, Submission


class _ForPeopleFirst(click.Group):
    """What people call comes first; what our own pods call, last."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["submit", "report", "recommend", "driver", "executor"]


@click.group(cls=_ForPeopleFirst)
def spark() -> None:
    """Run pipelines on Spark, with the data source rocketmq, and report on lag."""


spark.add_command(driver)
spark.add_command(executor)
spark.add_command(report)
spark.add_command(recommend)


@spark.command(context_settings={"ignore_unknown_options": True})
@click.argument("pipeline", metavar="PIPELINE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@spark_options
@click.option("--name", help="The application's name. Default: that of the pipeline.")
@click.option(
    "--drain-timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the batch under way may take to end once the driver is asked to.",
)
def submit(
    *, pipeline: str, arguments: tuple[str, ...], on: SparkOptions, name: str | None, drain_timeout: float
) -> None:
    """Run PIPELINE: module:function, or a file whose function `pipeline` it is (file.py, file.py:function).

    The function gets a SparkSession that knows the format rocketmq, and ARGUMENTS. Its streaming queries are waited
    for; SIGTERM ends them after the batch under way, with the group's offsets written back to the broker. A file, and
    the neighbours it imports at its top, are sent to the executors; a module must be installed there.

    Exit codes: 0 done, 1 failed with the sentence that is shown.
    """
    from rocketfleet.spark.submitting.pipeline_loading import PipelineError, load_pipeline, script_files
    from rocketfleet.spark.submitting.submit import run

    file = Path(pipeline.partition(":")[0])
    if file.suffix == ".py" and not file.is_file():
        raise click.ClickException(f"there is no file {file}")
    on.check()
    try:
        function, files = load_pipeline(pipeline), script_files(pipeline)
        submission = Submission(name or pipeline, on.master, on.settings, on.log_level, on.ship, drain_timeout, files)
        run(function, arguments, submission, lambda words: click.echo(words, err=True))
    except (PipelineError, PipelineFailed) as error:
        raise click.ClickException(str(error)) from error
