"""`spec` of a ConsumerGroup. Names and defaults are those of the worker, which a test sees to (test_settings_agree.py).

What a schema can say stands here: types, bounds, defaults. Every list and text is bounded, which the API server asks
for before it evaluates a rule on it. What a schema can't say, or only as a regular expression that nobody wants to read
in an error, is in rules/.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from rocketfleet.api.allocation import Allocation
from rocketfleet.api.model import Model
from rocketfleet.api.template import Template
from rocketfleet.consumer.settings import ConsumeMode, Handover, InitialOffset
from rocketfleet.control.budget import Margin
from rocketfleet.wire.enums import ConsumeFromWhere, ExpressionType, MessageModel
from rocketfleet.worker.configuration.setting_table import OnTimeout

MOST_SUBSCRIPTIONS = 64
MOST_REPLICAS = 1000
GRACE_MARGIN = int(Margin.POD_GRACE.seconds)  # that a pod's grace period has to be longer than its drain
DEFAULT_LOCK_LIFE = 60  # seconds: the brokers' own
WAIT_GRACE = int(Margin.WITHOUT_LIMIT.seconds)  # a pod's grace period where its drain may take as long as it likes
OPERATOR_CLASS = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
STARTUP_SECONDS = 300  # that a pod may take to start
RFC_3339 = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"

Seconds = Annotated[float, Field(ge=0, le=86_400)]


class Engine(StrEnum):
    WORKER = "Worker"
    CONTAINER = "Container"
    SPARK = "Spark"

    @property
    def is_ours(self) -> bool:
        """Whether our own runtime is in the pod: it has a control port, and says itself what it holds and how far it
        is. Somebody's own consumer is only seen from outside."""
        return self is not Engine.CONTAINER


class CodeUpdate(StrEnum):
    ROLL = "Roll"
    IGNORE = "Ignore"  # whichever pod is made next has the new code


class UpdateType(StrEnum):
    ROLLING = "Rolling"
    RECREATE = "Recreate"


class DeletionPolicy(StrEnum):
    """What becomes of a group at its brokers when its object is deleted."""

    RETAIN = "Retain"
    DELETE_OFFSETS = "DeleteOffsets"
    DELETE_ALL = "DeleteAll"
    DELETE = "Delete"  # deprecated: DeleteOffsets


class CredentialsSource(Model):
    """Where the access key comes from."""

    secret_name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=253,
            description="A Secret in the same namespace with accessKey, secretKey and, optionally, securityToken.",
        ),
    ]


class Tls(Model):
    """TLS towards name servers and brokers."""

    enabled: Annotated[bool, Field(description="Whether connections are encrypted.")] = True
    secret_name: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=253,
            description="A Secret with ca.crt and, for a client certificate, tls.crt and tls.key.",
        ),
    ] = None
    server_name: Annotated[
        str | None, Field(min_length=1, max_length=253, description="The server name to expect in certificates.")
    ] = None
    check_hostname: Annotated[
        bool,
        Field(
            description="Whether the certificate has to match the host name. Brokers register under addresses that few "
            "certificates name; the chain is verified in any case."
        ),
    ] = True


class Cluster(Model):
    """The RocketMQ that the group consumes from."""

    name_servers: Annotated[
        list[Annotated[str, Field(max_length=260, description="host:port")]],
        Field(min_length=1, max_length=16, description="Name servers, each as host:port."),
    ]
    credentials: Annotated[CredentialsSource | None, Field(description="ACL credentials. Left out: none.")] = None
    tls: Annotated[Tls | None, Field(description="TLS towards name servers and brokers. Left out: none.")] = None


class TopicSubscription(Model):
    """A topic, and what of it is wanted."""

    topic: Annotated[str, Field(min_length=1, max_length=127, description="The topic's name.")]
    expression: Annotated[
        str, Field(min_length=1, max_length=4096, description="Tags as a || b, or * for all; or SQL92.")
    ] = "*"
    type: Annotated[ExpressionType, Field(description="The kind of expression.")] = ExpressionType.TAG


class Autoscaling(Model):
    """Replicas by lag. With it, `spec.replicas` is left out."""

    min_replicas: Annotated[
        int,
        Field(
            ge=0,
            le=MOST_REPLICAS,
            description="Minimum number of members. 0: scale to zero while there is nothing to do.",
        ),
    ] = 1
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS, description="Maximum number of members.")]
    target_lag: Annotated[
        int | None, Field(ge=1, le=1_000_000_000_000, description="Target lag per member, in messages.")
    ] = None
    target_seconds: Annotated[
        float | None,
        Field(ge=0.1, le=86_400, description="Target age of the oldest message not yet consumed, in seconds."),
    ] = None
    scale_out_after_seconds: Annotated[
        Seconds,
        Field(description="Seconds for which more members must be needed without interruption before a scale-out."),
    ] = 10
    scale_in_after_seconds: Annotated[
        Seconds,
        Field(description="Seconds for which fewer members must be enough without interruption before a scale-in."),
    ] = 300
    scale_to_zero_after_seconds: Annotated[
        Seconds, Field(description="With minReplicas 0: seconds without anything to do before scaling to zero.")
    ] = 300
    trial_seconds: Annotated[
        float,
        Field(
            ge=1,
            le=86_400,
            description="Seconds after which a scale-out is undone if consumption has not risen, although there was "
            "enough to do.",
        ),
    ] = 60


class Consume(Model):
    """How members consume: the names and defaults of DefaultMQPushConsumer."""

    threads: Annotated[int, Field(ge=1, le=1000, description="Threads, or tasks, that handle messages.")] = 20
    max_threads: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Upper limit of threads while many messages wait. Default: threads."),
    ] = None
    batch_size: Annotated[
        int, Field(ge=1, le=1024, description="Messages per handler call, if the handler takes a list.")
    ] = 1
    pull_batch_size: Annotated[int, Field(ge=1, le=1024, description="Messages per pull; at least batchSize.")] = 32
    pull_interval_seconds: Annotated[Seconds, Field(description="Seconds between pulls from a queue.")] = 0
    queue_threshold: Annotated[int, Field(ge=1, le=65_535, description="Messages buffered in memory per queue.")] = 1000
    queue_threshold_mi_b: Annotated[
        int, Field(alias="queueThresholdMiB", ge=1, le=1024, description="MiB buffered in memory per queue.")
    ] = 100
    topic_threshold: Annotated[
        int | None, Field(ge=1, le=6_553_500, description="Messages buffered in memory per topic. Left out: no limit.")
    ] = None
    topic_threshold_mi_b: Annotated[
        int | None,
        Field(
            alias="topicThresholdMiB",
            ge=1,
            le=102_400,
            description="MiB buffered in memory per topic. Left out: no limit.",
        ),
    ] = None
    max_span: Annotated[
        int,
        Field(
            ge=1, le=65_535, description="Largest distance between the lowest and highest offset in flight in a queue."
        ),
    ] = 2000
    max_reconsume_times: Annotated[
        int,
        Field(
            ge=-1, le=10_000, description="Retries before a message is dead-lettered; -1: 16, or unlimited if Orderly."
        ),
    ] = -1
    consume_timeout_seconds: Annotated[
        float, Field(ge=1, le=86_400, description="A handler running longer than this many seconds is considered hung.")
    ] = 900
    suspend_seconds: Annotated[
        float, Field(ge=0.01, le=30, description="Orderly: seconds before a message is retried.")
    ] = 1
    auto_commit: Annotated[
        bool, Field(description="Orderly: commit handled messages automatically. false: the handler returns COMMIT.")
    ] = True


class Rebalance(Model):
    """How queues are handed over between members."""

    handover: Annotated[
        Handover,
        Field(
            description="Exclusive: a queue is consumed only while its lock is held, so nothing is consumed twice. "
            "Eager: like Java's client, without waiting for the lock. Ignored by engine Container, which does it its "
            "own way."
        ),
    ] = Handover.EXCLUSIVE
    handover_timeout_seconds: Annotated[
        float,
        Field(
            ge=0.1,
            le=86_400,
            description="Seconds that running handlers get to finish before their queue is handed over to another "
            "member.",
        ),
    ] = 30
    lock_max_live_seconds: Annotated[
        float,
        Field(
            ge=1,
            le=3600,
            description="Seconds until a lock that is not renewed expires: the brokers' "
            "rocketmq.broker.rebalance.lockMaxLiveTime. If set to more than that, two members may own the same queue.",
        ),
    ] = DEFAULT_LOCK_LIFE


class Shutdown(Model):
    """How members shut down."""

    drain_timeout_seconds: Annotated[
        float,
        Field(
            ge=0.1,
            le=3600,
            description=f"Seconds that running handlers get to finish. The pod's grace period is {GRACE_MARGIN} s "
            "longer, unless the template sets it. With onTimeout Wait it is one day.",
        ),
    ] = 30
    on_timeout: Annotated[
        OnTimeout,
        Field(
            description="When a drain times out. Proceed: handlers are cut short and the pod is deleted anyway; "
            "messages not committed are delivered again. Wait: the pod stays until its handlers finish, or until "
            "somebody deletes it with a short grace period. Engines Worker and Spark only: a Container gets its "
            "grace period."
        ),
    ] = OnTimeout.PROCEED


# Without a default in the schema: the API server would write it into every object, where an older operator meets it.
_CODE_UPDATE = (
    "What happens when the content of codeConfigMap changes. Roll (default): the pods are replaced, as for any other "
    "change. Ignore: running pods keep the code they have loaded; pods that start later use the new code."
)


class Worker(Model):
    """Engine Worker: our runtime with the user's handler."""

    image: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=512,
            description="Image that contains the handler. Default: the operator's worker image.",
        ),
    ] = None
    handler: Annotated[str, Field(max_length=255, description="The function that gets the messages: module:function.")]
    path: Annotated[
        str | None,
        Field(min_length=1, max_length=1024, description="Directory of the handler's module, in the image."),
    ] = None
    code_config_map: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=253,
            description="A ConfigMap with the handler's module, one key per file. Works with any image.",
        ),
    ] = None
    code_update: Annotated[CodeUpdate | None, Field(description=_CODE_UPDATE)] = None
    processes: Annotated[
        int, Field(ge=1, le=64, description="Processes in each pod, to use several cores. Each is a member.")
    ] = 1
    startup_seconds: Annotated[
        int,
        Field(
            ge=1,
            le=3600,
            description="Seconds that a pod may take to start, including the import of the handler's module, before "
            "its container is restarted.",
        ),
    ] = STARTUP_SECONDS


class Spark(Model):
    """Engine Spark: a pipeline as a consumer group."""

    pipeline: Annotated[
        str,
        Field(
            max_length=255,
            description="The function that builds a query from the group's messages: module:function. It receives them "
            "as a streaming DataFrame and returns a DataStreamWriter that has not been started.",
        ),
    ]
    image: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=512,
            description="Image that contains the pipeline. Default: the operator's Spark image.",
        ),
    ] = None
    path: Annotated[
        str | None,
        Field(min_length=1, max_length=1024, description="Directory of the pipeline's module, in the image."),
    ] = None
    code_config_map: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=253,
            description="A ConfigMap with the pipeline's module, one key per file. Works with any image.",
        ),
    ] = None
    code_update: Annotated[CodeUpdate | None, Field(description=_CODE_UPDATE)] = None
    master: Annotated[
        str,
        Field(
            min_length=1,
            max_length=255,
            description="Where executors run. local[*] or local[N]: in the driver's pod. k8s: in pods of their own, "
            "through Spark's scheduler. spark://host:port: in a standalone cluster.",
        ),
    ] = "local[*]"
    executors: Annotated[int, Field(ge=1, le=1000, description="Number of executors, if the master is not local.")] = 1
    conf: Annotated[
        dict[str, Annotated[str, Field(max_length=4096)]] | None,
        Field(max_length=128, description="Spark's own settings."),
    ] = None
    trigger: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="Interval between batches, such as 10 seconds. Default: as soon as the previous batch is done.",
        ),
    ] = None
    checkpoint: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            description="Location of the query's checkpoint: a URL or a directory that outlives the pod.",
        ),
    ]
    max_offsets_per_trigger: Annotated[
        int | None,
        Field(ge=1, le=1_000_000_000_000, description="Maximum messages per batch. Default: all that are available."),
    ] = None


class Update(Model):
    """How a changed spec is rolled out to the pods."""

    type: Annotated[
        UpdateType | None,
        Field(
            description="Rolling: one pod after the other. Recreate: all pods are drained before the first new one "
            "starts, so nothing is consumed meanwhile. Left out: Recreate for settings that all members have to "
            "agree on (engine, name servers, subscriptions, messageModel, consumeMode, handover, allocation), else "
            "Rolling. With Rolling, members run with different settings side by side after such an edit, which may "
            "skip or repeat messages."
        ),
    ] = None
    surge: Annotated[
        int, Field(ge=0, le=1, description="1: an extra pod joins while the others are replaced. 0: one at a time.")
    ] = 0


class ConsumerGroupSpec(Model):
    """What a group consumes, how, and with how many members."""

    group_name: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=120,
            description="The group's name at the broker. Default: the object's name. Immutable.",
        ),
    ] = None
    cluster: Annotated[Cluster, Field(description="The RocketMQ that the group consumes from.")]
    subscriptions: Annotated[
        list[TopicSubscription],
        Field(
            min_length=1,
            max_length=MOST_SUBSCRIPTIONS,
            description="The topics, the same for every member.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["topic"]},
        ),
    ]
    message_model: Annotated[
        MessageModel, Field(description="Clustering: members share the messages. Broadcasting: each gets all of them.")
    ] = MessageModel.CLUSTERING
    consume_mode: Annotated[
        ConsumeMode, Field(description="Concurrent: in parallel. Orderly: in the order of each queue.")
    ] = ConsumeMode.CONCURRENT
    consume_from_where: Annotated[
        ConsumeFromWhere, Field(description="Where the group starts in a queue without a stored offset.")
    ] = ConsumeFromWhere.LAST_OFFSET
    consume_timestamp: Annotated[
        str | None,
        Field(
            max_length=40,
            pattern=RFC_3339,
            json_schema_extra={"format": "date-time"},
            description="With Timestamp, and only then: the time to start from, such as 2026-01-31T08:00:00Z.",
        ),
    ] = None
    initial_offset: Annotated[
        InitialOffset,
        Field(
            description="Strict: start offsets are written before the first pod starts. Native: like Java's client, "
            "where the broker lets a young queue start at 0, whatever consumeFromWhere says."
        ),
    ] = InitialOffset.STRICT
    allocation: Annotated[Allocation, Field(description="How queues are allocated to members.")] = Allocation()
    replicas: Annotated[
        int | None,
        Field(
            ge=0,
            le=MOST_REPLICAS,
            description="Number of members. Default: 1. Leave it out with autoscaling; set it for kubectl autoscale.",
        ),
    ] = None
    allow_idle_members: Annotated[
        bool, Field(description="Run as many members as requested, even if there are fewer queues.")
    ] = False
    autoscaling: Annotated[
        Autoscaling | None, Field(description="Scale the number of members by lag. Replaces replicas.")
    ] = None
    suspend: Annotated[bool, Field(description="Drain all members and run none until this is false again.")] = False
    consume: Annotated[Consume, Field(description="How members consume.")] = Consume()
    rebalance: Annotated[Rebalance, Field(description="How queues are handed over between members.")] = Rebalance()
    shutdown: Annotated[Shutdown, Field(description="How members shut down.")] = Shutdown()
    update: Annotated[Update, Field(description="How a changed spec is rolled out to the pods.")] = Update()
    engine: Annotated[
        Engine,
        Field(
            description="What runs in the pods. Worker: our runtime with a Python handler. Container: a consumer of "
            "your own, in any language. Spark: a pipeline."
        ),
    ] = Engine.WORKER
    worker: Annotated[Worker | None, Field(description="Engine Worker: the handler and its image or code.")] = None
    spark: Annotated[Spark | None, Field(description="Engine Spark: the pipeline.")] = None
    template: Annotated[
        Template | None, Field(description="A pod template. The operator fills in what it leaves out.")
    ] = None
    deletion_policy: Annotated[
        DeletionPolicy,
        Field(
            description="What becomes of the group at the brokers of its own cluster when the object is deleted. "
            "Retain: everything stays. DeleteOffsets: its settings and offsets go, its retry and dead letter topics "
            "stay. DeleteAll: these go too, with the messages in them. Delete: deprecated, means DeleteOffsets."
        ),
    ] = DeletionPolicy.RETAIN
    operator_class: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=63,
            pattern=OPERATOR_CLASS,
            description="The operator that looks after this group, where a cluster has several: the one with this "
            "--operator-class. Default: the one without a class.",
        ),
    ] = None

    @property
    def deletes_group(self) -> bool:
        """Whether the group's settings and offsets go with the object."""
        return self.deletion_policy is not DeletionPolicy.RETAIN

    @property
    def deletes_topics(self) -> bool:
        """Whether its retry and dead letter topics go too."""
        return self.deletion_policy is DeletionPolicy.DELETE_ALL

    @property
    def program(self) -> Worker | Spark | None:
        """What our runtime runs in the pods: the section of the engine. None: a consumer of somebody's own."""
        return {Engine.WORKER: self.worker, Engine.SPARK: self.spark, Engine.CONTAINER: None}[self.engine]
