"""Running a pipeline: a session on whatever master, the function, and an end in good order.

The driver is this process, on every master; executors are Spark's business. So a laptop (`local[*]`), a standalone
cluster and Kubernetes differ in the master's name; in pods, executors need an image besides (`executor_pods.py`).

The pipeline returns and its streaming queries go on; this process stays until they have ended. SIGTERM and SIGINT let
them run dry first (`source/drain.py`): the batch under way is finished and the group's offsets are at the broker before
they are stopped. A second signal stops them at once.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.spark import register
from rocketfleet.spark.source.drain import DRAIN_FILE
from rocketfleet.spark.source.errors import one_line, sentence_of
from rocketfleet.spark.submitting import executor_pods, shipping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

_POLL: Final = 0.1
_PYTHON: Final = "PYSPARK_PYTHON"
_PYTHON_ERROR: Final = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): .+$", re.MULTILINE)


class PipelineFailed(Exception):
    """The pipeline failed for a reason that one sentence can say."""


@dataclass(frozen=True)
class Submission:
    """What is to be run, and on what."""

    name: str
    master: str = "local[*]"
    settings: Mapping[str, str] = field(default_factory=dict)
    log_level: str = "FATAL"
    ship: bool = True
    drain_timeout: float = 60.0
    files: Sequence[Path] = ()
    """Python files and packages of the pipeline that its functions need where they run."""

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local") and not self.master.startswith("local-cluster")


def run(
    pipeline: Callable[..., Any], arguments: Sequence[str], submission: Submission, say: Callable[[str], None]
) -> None:
    """Run a pipeline to its end, or to that of its streaming queries. PipelineFailed if it fails with a sentence."""
    with tempfile.TemporaryDirectory(prefix="rocketfleet-spark-") as directory:
        drain = Path(directory) / "drain"
        os.environ[DRAIN_FILE] = str(drain)
        os.environ.setdefault(_PYTHON, sys.executable)
        try:
            # Signals last: Spark sets a handler of its own when a session is made.
            with _session(submission, Path(directory)) as spark, _stopping(spark, submission, drain, say):
                pipeline(spark, *arguments)
                _wait_for_queries(spark, say)
        except Exception as error:
            sentence = sentence_for(error)
            if sentence is None:
                raise
            raise PipelineFailed(sentence) from error


def sentence_for(error: Exception) -> str | None:
    """What to say of an error. What is not Spark's or the source's is the pipeline's own bug, and shows."""
    from pyspark.errors import PySparkException

    said = sentence_of(error)
    if said is None and isinstance(error, PySparkException):
        text = str(error).strip()
        in_python = _PYTHON_ERROR.search(text)  # what a worker raised says more than that a job was aborted
        said = one_line(in_python[0] if in_python else text.partition("\n")[0])
    return said


@contextmanager
def _session(submission: Submission, directory: Path) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    settings = {"spark.log.level": submission.log_level, "spark.ui.showConsoleProgress": "false"}
    if submission.ship and not submission.is_local:
        settings |= shipping.shipped(shipping.pack(directory / "rocketfleet.zip"))
    if executor_pods.is_kubernetes(submission.master):
        template = executor_pods.write_template(directory / "executor.json")
        where = executor_pods.whereabouts(submission.master)
        settings |= executor_pods.pod_settings(submission.settings, where, template)
    builder = SparkSession.builder.master(submission.master).appName(submission.name)
    for name, value in {**settings, **submission.settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        register(spark)
        for path in submission.files:
            spark.sparkContext.addPyFile(str(shipping.zipped(path, directory) if path.is_dir() else path))
        yield spark
    finally:
        spark.stop()


@contextmanager
def _stopping(spark: SparkSession, submission: Submission, drain: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let the queries run dry at the first SIGTERM or SIGINT, and stop them at once at the second.

    A thread does it, for the pipeline may itself be waiting for its queries.
    """
    asked, hurry, done = threading.Event(), threading.Event(), threading.Event()

    def watch() -> None:
        asked.wait()
        if not done.is_set():
            _drain(spark, submission, drain, hurry, say)

    def note(_number: int, _frame: object) -> None:
        (hurry if asked.is_set() else asked).set()

    watching = threading.Thread(target=watch, name="drain", daemon=True)
    watching.start()
    # Handlers can be set in the main thread only; elsewhere nobody signals us.
    numbers = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield
        if asked.is_set():
            watching.join()
    finally:
        done.set()
        asked.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _drain(
    spark: SparkSession,
    submission: Submission,
    drain: Path,
    hurry: threading.Event,
    say: Callable[[str], None],
) -> None:
    drain.touch()
    say("draining: the batches under way are finished; a second signal stops them at once")
    give_up = time.monotonic() + submission.drain_timeout
    for query in spark.streams.active:
        while query.isActive and not _is_idle(query) and time.monotonic() < give_up and not hurry.wait(_POLL):
            pass
        if query.isActive and query.status["isTriggerActive"]:
            say(f"query {query.name or query.id} is stopped in the middle of a batch, which will be repeated")
        elif query.isActive and not _is_idle(query):
            say(f"query {query.name or query.id} is stopped; its last batch is told to the broker at its next start")
        query.stop()


def _is_idle(query: Any) -> bool:
    """Whether a query that runs dry has nothing left to do: it asked the source, and there was nothing."""
    status = query.status
    return not status["isDataAvailable"] and not status["isTriggerActive"]


def _wait_for_queries(spark: SparkSession, say: Callable[[str], None]) -> None:
    queries = list(spark.streams.active)
    if queries:
        say(f"streaming queries: {len(queries)} running; SIGTERM or Ctrl-C ends them after their batch")
    for query in queries:
        query.awaitTermination()
