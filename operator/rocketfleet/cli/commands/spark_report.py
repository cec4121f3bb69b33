"""`rocketfleet spark report`: what the history of lag says, as a page to look at, tables and recommendations."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketfleet.base.counting import counted
from rocketfleet.cli.access.kube_access import KubeOptions, kube_options
from rocketfleet.cli.options.spark_master import SparkOptions, spark_options
from rocketfleet.cli.output import errors_as_sentences

if TYPE_CHECKING:
    from datetime import datetime

    from rocketfleet.spark.analytics.batch import AnalysisRequest
    from rocketfleet.spark.analytics.figures import Analysis

_DAY = click.DateTime(["%Y-%m-%d"])
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    short_help="Report on lag: a page with charts, tables, recommendations.",
    epilog="\b\nExamples:\n"
    "  rocketfleet spark report --history /data/lag --out lag.html\n"
    "  rocketfleet spark report --history rocketmq://10.0.0.1:9876/lag-history --out lag.html --since 2026-01-24\n"
    "  rocketfleet spark report --history /data/lag --aggregates /data/lag-windows --recommend floors.json\n"
    "  rocketfleet spark report --aggregates /data/lag-windows --out lag.html --apply -n shop",
)
@click.option(
    "--history",
    metavar="WHERE",
    help="The lag's history: the directory of its Parquet files, or rocketmq://host:port/topic.",
)
@click.option(
    "--aggregates",
    metavar="DIRECTORY",
    help="With --history: write the windows, days and hours there, as Parquet by day. Without: report on those that "
    "are there, written before or by a stream.",
)
@click.option("--out", type=_FILE, metavar="FILE", help="Write the report there: one HTML file.")
@click.option("--recommend", type=_FILE, metavar="FILE", help="Write the recommendations there, as JSON.")
@click.option(
    "--apply",
    is_flag=True,
    help="Write this hour's recommendation to each ConsumerGroup, as the floor of its autoscaling.",
)
@click.option("--since", type=_DAY, metavar="DAY", help="The first day, in UTC: 2026-01-24. [default: the history's]")
@click.option("--until", type=_DAY, metavar="DAY", help="The first day that is left out. [default: none]")
@click.option(
    "--window",
    type=click.IntRange(60, 86_400),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="With --history: how long a window is. It should hold several samples; the operator takes one per minute.",
)
@click.option(
    "--charts",
    type=click.IntRange(min=0),
    default=12,
    show_default=True,
    metavar="GROUPS",
    help="How many groups get charts of their own: those that need looking at most. The tables have all.",
)
@spark_options
@kube_options
def report(
    *,
    history: str | None,
    aggregates: str | None,
    out: Path | None,
    recommend: Path | None,
    apply: bool,
    since: datetime | None,
    until: datetime | None,
    window: int,
    charts: int,
    on: SparkOptions,
    kube: KubeOptions,
) -> None:
    """Report on the lag of all groups in a history.

    The history is what the operator keeps with --lag-history-dir or --lag-history-topic. Secrets for a topic come
    from the environment (ROCKETFLEET_ACCESS_KEY, ROCKETFLEET_SECRET_KEY).

    Exit codes: 0 done, 1 failed with the sentence that is shown.
    """
    from rocketfleet.spark.analytics.batch import AnalysisRequest
    from rocketfleet.spark.analytics.windows.reference import HistoryError, parse_history
    from rocketfleet.spark.submitting.submit import PipelineFailed, Submission, run

    if history is None and aggregates is None:
        raise click.UsageError("say where the history is: --history, or --aggregates with windows made before")
    if out is None and recommend is None and not apply and (history is None or aggregates is None):
        raise click.UsageError("say what to make of it: --out, --recommend, --apply, or --aggregates with --history")
    for path in (out, recommend):
        if path is not None and not path.absolute().parent.is_dir():
            raise click.ClickException(f"there is no directory {path.parent} to write {path.name} to")
    first, beyond = (None if day is None else day.date() for day in (since, until))
    try:
        if history is not None:
            parse_history(history)
        on.check()
        request = AnalysisRequest(history, aggregates, first, beyond, window, charts)
        made: list[Analysis] = []
        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
        submission = Submission("rocketfleet-report", on.master, {**settings, **on.settings}, on.log_level, on.ship)
        run(functools.partial(_analyse, request, made), (), submission, _say)
    except (HistoryError, PipelineFailed) as error:
        raise click.ClickException(str(error)) from error
    with errors_as_sentences():
        _finish(made[0], out, recommend, kube if apply else None)


def _say(words: str) -> None:
    click.echo(words, err=True)


def _analyse(request: AnalysisRequest, made: list[Analysis], spark: object) -> None:
    from rocketfleet.spark.analytics.batch import analyse

    made.append(analyse(spark, request, _say))


def _finish(analysis: Analysis, out: Path | None, recommended: Path | None, kube: KubeOptions | None) -> None:
    from rocketfleet.spark.analytics.recommendation_file import floors_at, write_recommendations
    from rocketfleet.spark.analytics.recommending import recommend
    from rocketfleet.spark.analytics.report.page import page

    recommendations = [recommend(group) for group in analysis.groups]
    now = time.time()
    if out is not None:
        out.write_text(page(analysis, recommendations, now), "utf-8")
        _say(f"{out}: {counted(len(analysis.groups), 'group')}, {counted(analysis.samples, 'sample', grouped=True)}")
    if recommended is not None:
        write_recommendations(recommended, analysis, recommendations)
        _say(f"{recommended}: recommendations for {counted(sum(any(one.members) for one in recommendations), 'group')}")
    if kube is not None:
        from rocketfleet.cli.access.replica_floors import apply_floors

        asyncio.run(apply_floors(floors_at(recommendations, now), kube))
