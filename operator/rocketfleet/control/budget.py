"""The time budget of a drain: every margin around `shutdown.drainTimeoutSeconds`, in one table.

Handlers get `drainTimeoutSeconds`, T. What comes after them needs time too, and each party that waits for another has
to wait a little longer than the other may take: else it gives up on a drain that was about to end well. That is a
property of the margins together, so they are all here. tests/unit/control/test_budget.py compares them with each other,
and DESIGN.md shows the table.

Two ways lead through it. The operator *asks* (POST /drain), reads the offsets back, and deletes the pod only then: the
consumer's net, the control call and the operator's call follow each other, and the planner looks on. Anybody else just
*deletes* the pod: then SIGTERM begins the drain, and the pod's grace period is all there is. It covers the last commit
and the locks, but not the consumer's net, which is for brokers that do not answer: what such a pod had not committed is
delivered again.

With onTimeout Wait, T is infinite in the worker, and so is every limit beyond it there. The operator's own limits still
count from the T of the manifest: it asks again.
"""

from enum import Enum, unique


@unique
class Beyond(Enum):
    """What a margin is added to. The value is for people."""

    HANDLERS = "T"
    WIND_DOWN = "the end of handlers"
    CONSUMER = "the end of the drain"
    MARK = "T, from the mark on"
    PLANNER = "the planner's limit"
    GRACE = "the worker's grace period"
    NOTHING = "in place of T"


@unique
class Margin(Enum):
    """Seconds, what they are added to, and why there are so many."""

    FINAL_COMMIT = 5.0, Beyond.WIND_DOWN, "the last commit of a queue, even where its handlers took all the time"
    UNLOCK = 5.0, Beyond.WIND_DOWN, "giving its lock back; after that, others wait until the lock ends by itself"
    CONSUMER_NET = 15.0, Beyond.HANDLERS, "the consumer abandons what is left: a net, for each queue bounds itself"
    QUERY_STOP = 10.0, Beyond.WIND_DOWN, "Spark waits for the thread of a query that was told to stop"
    QUERY_COMMIT = 10.0, Beyond.WIND_DOWN, "a driver writes its offsets to the brokers and reads them back"
    CONTROL_CALL = 30.0, Beyond.HANDLERS, "worker and driver answer POST /drain; a parent kills children that did not"
    OPERATOR_CALL = 40.0, Beyond.HANDLERS, "the operator waits for that answer: the worker gives up first, and says so"
    ANSWER = 5.0, Beyond.CONSUMER, "the control port hands the answer to those who wait for it"
    EXIT = 10.0, Beyond.CONSUMER, "exit hooks and threads that the user's code left, then the process is ended"
    PLANNER = 15.0, Beyond.MARK, "the drain has failed: commits, the read back and a slow API server had their time"
    DELETION = 60.0, Beyond.PLANNER, "the object's deletion goes on without a drain, whatever onTimeout says"
    POD_GRACE = (
        10.0,
        Beyond.HANDLERS,
        "from SIGTERM to SIGKILL: the last commits and locks, if anybody deletes a pod",
    )
    SPARK_GRACE = 20.0, Beyond.GRACE, "the same for a driver: its query, JVM and executors end too"
    WITHOUT_LIMIT = 86_400.0, Beyond.NOTHING, "onTimeout Wait: a pod's grace period; a process whose parent is gone"

    def __init__(self, seconds: float, beyond: Beyond, why: str) -> None:
        self.seconds = seconds
        self.beyond = beyond
        self.why = why

    def after(self, seconds: float) -> float:
        """This margin on top of so many seconds."""
        return seconds + self.seconds
