"""One driver: loads a pipeline, runs its query as the one member of the group, and stops between two batches.

Phases, as a worker's: *Joining* (the pipeline is loaded, brokers are asked, Spark is started), *Running*, *Draining*,
*Closed*. To drain is: the source gives nothing new (`source/drain.py`) → the batch under way ends, if it does in time →
the query is stopped → what is done is written back and read back → the group is left. A batch that does not end in time
is interrupted and comes again: nothing of it is committed.

`run` belongs to the main thread: Spark's gateway and the client are called from nowhere else. What others may look at
or ask for is below; it never waits for Spark.
"""

from __future__ import annotations

import concurrent.futures
import logging
import os
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.base.counting import counted
from rocketfleet.base.settings_error import SettingsError
from rocketfleet.client.errors import RocketMQError
from rocketfleet.control import exit_codes
from rocketfleet.control.budget import Margin
from rocketfleet.control.messages import WorkerPhase
from rocketfleet.spark import register
from rocketfleet.spark.driver import query as queries
from rocketfleet.spark.driver.group_member import GroupMember
from rocketfleet.spark.driver.options import read_options, secrets_of
from rocketfleet.spark.driver.progress import BatchProgress, further
from rocketfleet.spark.driver.session import DriverPlace, master_url, session_conf
from rocketfleet.spark.driver.spark_home import own_spark_home
from rocketfleet.spark.source import reporting
from rocketfleet.spark.source.drain import DRAIN_FILE
from rocketfleet.spark.source.errors import SourceError, one_line
from rocketfleet.spark.submitting import shipping
from rocketfleet.spark.submitting.pipeline_loading import PipelineError, load_pipeline
from rocketfleet.spark.submitting.submit import sentence_for
from rocketfleet.worker.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from rocketfleet.client.config import ClientConfig
    from rocketfleet.consumer.handover.holdings import FinalOffset
    from rocketfleet.spark.driver.settings import DriverSettings
    from rocketfleet.spark.source.offsets import Offsets
    from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
QUERY_LOOK_SECONDS: Final = 0.5  # between two looks at the query
DRAIN_LOOK: Final = 0.05
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_NO_SPARK: Final = "Spark is not installed here: in a checkout of Rocketfleet, pip install '.[spark]'; and Java 17"


@dataclass(frozen=True)
class DriverSpec:
    """All that a driver needs to know."""

    settings: DriverSettings
    config: ClientConfig
    place: DriverPlace
    join_timeout: float = 60.0
    stuck_after: float = 120.0


@dataclass(frozen=True)
class QueryStanding:
    """How far the query is, in one piece: it is replaced as a whole, so any thread may read it."""

    done: dict[MessageQueue, int] = field(default_factory=dict)
    lost: int = 0
    batch: BatchProgress | None = None
    executors: int | None = None
    in_a_batch: bool = False


class Failed(Exception):
    """The driver cannot go on; the message says why, and the code whether another try would help."""

    def __init__(self, sentence: str, code: int = exit_codes.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class Driver:
    """See the module."""

    def __init__(self, spec: DriverSpec, clock: Callable[[], float] = time.monotonic) -> None:
        self.spec = spec
        self.phase = WorkerPhase.JOINING
        self.standing = QueryStanding()
        self.client_id = spec.config.client_id
        self._clock = clock
        self._last_beat = clock()
        self._stop, self._hurry = threading.Event(), threading.Event()
        self._signalled = False
        self._outcome: concurrent.futures.Future[Outcome] = concurrent.futures.Future()
        self._member: GroupMember | None = None
        self._doing = "it has just begun"

    # -- life ---------------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """From the first look to the last commit. It always ends with an outcome."""
        try:
            outcome = self._live()
        except Failed as error:
            outcome = Outcome(error.code, sentence=str(error))
        except Exception as error:
            _log.exception("the driver failed")
            outcome = Outcome(exit_codes.FAILED, sentence=_brief("the driver", error))
        self.phase = WorkerPhase.CLOSED
        self._outcome.set_result(outcome)
        return outcome

    def _live(self) -> Outcome:
        pipeline = self._load()
        with tempfile.TemporaryDirectory(prefix="rocketfleet-spark-", ignore_cleanup_errors=True) as name:
            directory = Path(name)
            member = GroupMember(self.spec.config, self.spec.settings.consumer, self._clock)
            try:
                start = self._join(member)
                if start is None:
                    return Outcome(exit_codes.DRAINED)
                with self._session(directory) as spark:
                    return self._consume(spark, pipeline, member, start, directory)
            finally:
                self._leave(member)

    def _load(self) -> Callable[..., Any]:
        name = self.spec.settings.spark.pipeline
        try:
            import pyspark  # noqa: F401 - only whether it is there
        except ModuleNotFoundError:
            raise Failed(_NO_SPARK, exit_codes.SETTINGS) from None
        try:
            return load_pipeline(name)
        except PipelineError as error:
            raise Failed(str(error), exit_codes.SETTINGS) from None
        except (Exception, SystemExit) as error:
            _log.exception("loading %s failed", name)
            raise Failed(f"{_brief(name, error)} while it was loaded: see the log", exit_codes.SETTINGS) from error

    def _join(self, member: GroupMember) -> Offsets | None:
        """Ask the brokers until they answer. None: told to stop meanwhile."""
        give_up, pause = self._clock() + self.spec.join_timeout, _FIRST_PAUSE
        while True:
            self._beat("the brokers are asked where the group stands")
            try:
                start = member.start_offsets()
            except (RocketMQError, SourceError) as error:
                self._beat(str(error))
                if self._clock() + pause > give_up:
                    raise Failed(f"the group could not be joined: {error}", exit_codes.NOT_JOINED) from error
                _log.warning("group %s is not joined, next try in %g s: %s", self.spec.settings.group, pause, error)
                if self._stop.wait(pause):
                    return None
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            return None if self._stop.is_set() else start

    @contextmanager
    def _session(self, directory: Path) -> Iterator[SparkSession]:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        self._beat("Spark is being started")
        settings, place = self.spec.settings, self.spec.place
        (directory / "reports").mkdir()
        os.environ |= {
            reporting.REPORTS: str(directory / "reports"),
            DRAIN_FILE: str(self._drain_file(directory)),
            **secrets_of(self.spec.settings, self.spec.config),
        }
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if place.path is not None:
            before = os.environ.get("PYTHONPATH")
            os.environ["PYTHONPATH"] = f"{place.path}{os.pathsep}{before}" if before else str(place.path)
        try:
            master, conf = master_url(settings, place), session_conf(settings, place)
        except SettingsError as error:
            raise Failed(str(error), exit_codes.SETTINGS) from None
        if master.startswith("local-cluster"):
            os.environ["SPARK_HOME"] = str(own_spark_home(directory / "home"))
        if master.startswith("spark://"):
            conf = {**shipping.shipped(shipping.pack(directory / "rocketfleet.zip")), **conf}
        builder = SparkSession.builder.master(master).appName(settings.group)
        for name, value in conf.items():
            builder = builder.config(name, value)
        try:
            spark = builder.getOrCreate()
        except PySparkException as error:
            _log.exception("Spark did not start")
            raise Failed(f"Spark did not start, is there Java 17? {one_line(str(error))[:300]}") from error
        try:
            register(spark)
            if master.startswith("spark://") and place.path is not None:
                for module in sorted(place.path.glob("*.py")):  # in pods and beside us, executors have the directory
                    spark.sparkContext.addPyFile(str(module))
            yield spark
        finally:
            spark.stop()

    def _consume(
        self, spark: SparkSession, pipeline: Callable[..., Any], member: GroupMember, start: Offsets, directory: Path
    ) -> Outcome:
        settings = self.spec.settings
        self._beat("the query is being started")
        if self._stop.is_set():
            return Outcome(exit_codes.DRAINED)
        try:
            query = queries.start(spark, pipeline, settings, read_options(settings, self.spec.config, start))
        except queries.NotAWriter as error:
            raise Failed(str(error), exit_codes.SETTINGS) from None
        except (Exception, SystemExit) as error:
            raise self._failed(error, settings.spark.pipeline) from error
        self._member, self.phase = member, WorkerPhase.RUNNING
        _log.info("the query of group %s runs; its checkpoint is %s", settings.group, settings.spark.checkpoint)
        while not self._stop.wait(QUERY_LOOK_SECONDS):
            self._look(query, directory)
            if not query.is_active:
                self._save(member, Margin.QUERY_COMMIT.seconds)
                raise self._failed(query.error, "the query")
            member.tend(self.standing.done)
        return self._drain(query, member, directory)

    def _look(self, query: queries.Query, directory: Path) -> None:
        """See how far the query is."""
        self._beat("the query runs")
        batch, report = query.progress(), reporting.read(directory / "reports", self.spec.settings.group)
        done, lost = self.standing.done, self.standing.lost
        for witness in (report, batch):
            if witness is not None:
                done, lost = further(done, witness.done), max(lost, witness.lost)
        self.standing = QueryStanding(done, lost, batch, query.executors(), query.in_a_batch)

    def _drain(self, query: queries.Query, member: GroupMember, directory: Path) -> Outcome:
        self.phase = WorkerPhase.DRAINING
        began = self._clock()
        give_up = began + self.spec.settings.consumer.drain_timeout
        _log.info("draining: the batch under way is finished")
        self._drain_file(directory).touch()
        while query.is_active and query.in_a_batch and self._clock() < give_up and not self._hurry.wait(DRAIN_LOOK):
            self._beat("the batch under way is finished")
            member.tend(self.standing.done)
        if query.is_active and query.in_a_batch:
            _log.warning("the query is stopped in the middle of a batch, which comes again")
        error = query.error if not query.is_active else None
        try:
            query.stop()
        except Exception as trouble:
            _log.warning("the query did not stop within its time: %s", one_line(str(trouble))[:300])
        if error is not None:
            _log.warning("the query had failed: %s", self._failed(error, "the query"))
        self._look(query, directory)
        self.standing = replace(self.standing, in_a_batch=False)
        final = self._save(member, Margin.QUERY_COMMIT.seconds)
        unsafe = sorted(queue for queue, end in final.items() if not end.confirmed)
        for queue in unsafe:
            _log.error(
                "%s: offset %d is not confirmed by the broker",
                queue,
                final[queue].offset,
                extra={"offset": final[queue].offset},
            )
        seconds = self._clock() - began
        _log.info("drained in %.2f s: %s, %d not confirmed", seconds, counted(len(final), "queue"), len(unsafe))
        return Outcome(exit_codes.NOT_CONFIRMED if unsafe else exit_codes.DRAINED, final, seconds)

    def _save(self, member: GroupMember, patience: float) -> dict[MessageQueue, FinalOffset]:
        self._beat("the last offsets are written back")
        return member.final_offsets(self.standing.done, patience)

    def _leave(self, member: GroupMember) -> None:
        try:
            member.leave()
        except Exception:
            _log.exception("the group could not be left in good order")

    def _failed(self, error: BaseException | None, what: str) -> Failed:
        """What to say of an error of the query's or the pipeline's."""
        if error is None:
            return Failed(f"{what} ended by itself, without an error: a group's query has to go on for ever")
        said = sentence_for(error) if isinstance(error, Exception) else None
        if said is None:
            _log.error("%s failed", what, exc_info=error)
            said = _brief(what, error)
        return Failed(said)

    @staticmethod
    def _drain_file(directory: Path) -> Path:
        return directory / "drain"

    def _beat(self, doing: str) -> None:
        self._last_beat, self._doing = self._clock(), doing

    # -- what may be asked for, from any thread or a signal -----------------------------------------------------------

    def stop(self) -> None:
        """Drain and end. Asked again, it changes nothing."""
        self._stop.set()

    def stop_or_hurry(self) -> None:
        """For a signal: drain and end; at the second, wait for the batch no longer. Requests do not count."""
        (self._hurry if self._signalled else self._stop).set()
        self._signalled = True

    @property
    def outcome(self) -> concurrent.futures.Future[Outcome]:
        """How it ended, once it has."""
        return self._outcome

    # -- what may be looked at, from any thread -----------------------------------------------------------------------

    @property
    def members(self) -> tuple[str, ...]:
        return () if self._member is None else self._member.members

    @property
    def owned(self) -> list[MessageQueue]:
        """The queues that the query reads."""
        return sorted(self.standing.done) if self.phase in (WorkerPhase.RUNNING, WorkerPhase.DRAINING) else []

    @property
    def is_settled(self) -> bool:
        """Whether it reads every queue that there is."""
        return self._member is not None and set(self._member.queues) <= set(self.owned)

    @property
    def since_beat(self) -> float:
        return max(0.0, self._clock() - self._last_beat)

    def not_ready(self) -> list[str]:
        """Why it is not ready; empty if it is."""
        if self.phase is WorkerPhase.JOINING:
            return [f"the query does not run yet: {self._doing}"]
        if self.phase is not WorkerPhase.RUNNING:
            return [f"the driver is {self.phase.value.lower()}"]
        if not self.standing.done:
            return ["the query has not said yet what it reads"]
        if self.client_id not in self.members:
            return ["the broker does not list this member yet"]
        return []

    def problems(self) -> list[str]:
        """Why it should be restarted; empty if it is well. Starting Spark, and the end, take what they take."""
        if self.phase is not WorkerPhase.RUNNING or self.since_beat <= self.spec.stuck_after:
            return []
        return [f"nobody has looked after the query for {self.since_beat:.0f} s: is Spark's JVM stuck?"]


def _brief(what: str, error: BaseException) -> str:
    """An error in one line."""
    text = one_line(str(error))
    return f"{what} raised {type(error).__name__}: {text}"[:500] if text else f"{what} raised {type(error).__name__}"
