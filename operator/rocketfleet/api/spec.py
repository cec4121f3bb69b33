"""`spec` of a ConsumerGroup. Names and defaults are those of the worker and, before it, of DefaultMQPushConsumer."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from rocketfleet.api.allocation import Allocation, Text
from rocketfleet.api.model import Model

MOST_SUBSCRIPTIONS = 64
MOST_REPLICAS = 1000
GROUP_NAME = r"^[%|a-zA-Z0-9_-]+$"
TOPIC_NAME = r"^[%|a-zA-Z0-9_-]+$"
ADDRESS = r"^[^\s:;]+:[0-9]{1,5}$"
RESTARTS = 10  # seconds a pod's grace period has to be longer than its drain

Seconds = Annotated[float, Field(ge=0, le=86_400)]


class MessageModel(StrEnum):
    CLUSTERING = "Clustering"
    BROADCASTING = "Broadcasting"


class ConsumeMode(StrEnum):
    CONCURRENT = "Concurrent"
    ORDERLY = "Orderly"


class ConsumeFromWhere(StrEnum):
    LAST_OFFSET = "LastOffset"
    FIRST_OFFSET = "FirstOffset"
    TIMESTAMP = "Timestamp"


class InitialOffset(StrEnum):
    STRICT = "Strict"
    NATIVE = "Native"


class Engine(StrEnum):
    WORKER = "Worker"
    CONTAINER = "Container"
    SPARK = "Spark"


class ExpressionType(StrEnum):
    TAG = "Tag"
    SQL92 = "SQL92"


class Handover(StrEnum):
    EXCLUSIVE = "Exclusive"
    EAGER = "Eager"


class OnTimeout(StrEnum):
    PROCEED = "Proceed"  # delete the pod all the same; what was not committed comes again
    WAIT = "Wait"  # keep the pod and go on trying, until somebody decides


class DeletionPolicy(StrEnum):
    RETAIN = "Retain"
    DELETE = "Delete"


class Credentials(Model):
    """Where the access key comes from."""

    secret_name: Annotated[
        str,
        Field(
            min_length=1, max_length=253, description="A Secret with accessKey, secretKey and, maybe, securityToken."
        ),
    ]


class Tls(Model):
    """TLS towards name servers and brokers."""

    enabled: bool = True
    secret_name: Annotated[
        str | None,
        Field(max_length=253, description="A Secret with ca.crt and, for a client certificate, tls.crt and tls.key."),
    ] = None
    server_name: Annotated[str | None, Field(max_length=253, description="The name to expect in certificates.")] = None
    check_hostname: Annotated[bool, Field(description="Whether a certificate has to name the host.")] = True


class Cluster(Model):
    """The RocketMQ that the group consumes from."""

    name_servers: Annotated[
        list[Annotated[str, Field(pattern=ADDRESS, max_length=260)]],
        Field(min_length=1, max_length=16, description="Name servers, as host:port."),
    ]
    credentials: Annotated[Credentials | None, Field(description="ACL credentials.")] = None
    tls: Annotated[Tls | None, Field(description="TLS towards name servers and brokers.")] = None


class Subscription(Model):
    """A topic, and what of it is wanted."""

    topic: Annotated[str, Field(min_length=1, max_length=127, pattern=TOPIC_NAME)]
    expression: Annotated[str, Field(min_length=1, max_length=4096, description="Tags as a || b, or SQL92.")] = "*"
    type: Annotated[ExpressionType, Field(description="The kind of expression.")] = ExpressionType.TAG


class Autoscaling(Model):
    """Replicas by lag. With it, `spec.replicas` is left out."""

    min_replicas: Annotated[int, Field(ge=0, le=MOST_REPLICAS)] = 1
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)]
    target_lag: Annotated[int | None, Field(ge=1, description="Messages of lag for each member.")] = None
    target_seconds: Annotated[float | None, Field(gt=0, description="Age of the oldest message not consumed.")] = None


class Consume(Model):
    """How members consume: the names and defaults of DefaultMQPushConsumer."""

    threads: Annotated[int, Field(ge=1, le=1000, description="Threads, or tasks, that handle messages.")] = 20
    max_threads: Annotated[int | None, Field(ge=1, le=1000, description="Threads while much is waiting.")] = None
    batch_size: Annotated[int, Field(ge=1, le=1024, description="Messages a call of the handler.")] = 1
    pull_batch_size: Annotated[int, Field(ge=1, le=1024, description="Messages a pull.")] = 32
    pull_interval_seconds: Annotated[Seconds, Field(description="Pause between pulls of a queue.")] = 0
    queue_threshold: Annotated[int, Field(ge=1, le=65_535, description="Messages in memory, each queue.")] = 1000
    queue_threshold_mi_b: Annotated[
        int, Field(alias="queueThresholdMiB", ge=1, le=1024, description="The same in MiB.")
    ] = 100
    topic_threshold: Annotated[int | None, Field(ge=1, le=6_553_500, description="Messages in memory, each topic.")] = (
        None
    )
    topic_threshold_mi_b: Annotated[
        int | None, Field(alias="topicThresholdMiB", ge=1, le=102_400, description="The same in MiB.")
    ] = None
    max_span: Annotated[int, Field(ge=1, le=65_535, description="How far offsets in flight may lie apart.")] = 2000
    max_reconsume_times: Annotated[
        int, Field(ge=-1, le=10_000, description="Tries before the dead letters; -1: 16, without end if Orderly.")
    ] = -1
    consume_timeout_seconds: Annotated[Seconds, Field(description="After this a handler is said to hang.")] = 900
    suspend_seconds: Annotated[Seconds, Field(description="Orderly: pause before a message is tried again.")] = 1
    auto_commit: Annotated[bool, Field(description="Orderly: commit without being told to.")] = True


class Rebalance(Model):
    """How queues go from one member to another."""

    handover: Annotated[
        Handover, Field(description="Exclusive: only under the queue's lock, nothing repeated. Eager: as Java does.")
    ] = Handover.EXCLUSIVE
    handover_timeout_seconds: Annotated[
        Seconds, Field(description="How long a queue on its way to another member waits for its handlers.")
    ] = 30


class Shutdown(Model):
    """How members leave."""

    drain_timeout_seconds: Annotated[
        float, Field(ge=0, le=3600, description="What handlers get to finish; below the pod's grace period by 10 s.")
    ] = 30
    on_timeout: Annotated[
        OnTimeout,
        Field(description="A drain that did not make it: Proceed deletes the pod all the same, Wait keeps it."),
    ] = OnTimeout.PROCEED


class Worker(Model):
    """Engine Worker: our runtime with the user's handler."""

    image: Annotated[
        str | None, Field(max_length=512, description="Image with the handler; default: the operator's worker image.")
    ] = None
    handler: Annotated[
        str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$", max_length=255, description="module:function")
    ]
    path: Annotated[
        str | None, Field(max_length=1024, description="Directory of the handler's module, in the image.")
    ] = None
    code_config_map: Annotated[
        str | None, Field(max_length=253, description="A ConfigMap with the handler's module, instead of an image.")
    ] = None
    processes: Annotated[int, Field(ge=1, le=64, description="Processes in each pod: each is a member.")] = 1


class Spark(Model):
    """Engine Spark: a pipeline as a consumer group."""

    pipeline: Annotated[
        str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$", max_length=255, description="module:function")
    ]
    image: Annotated[str | None, Field(max_length=512)] = None
    master: Annotated[str, Field(max_length=255, description="local[*], spark://… or k8s")] = "local[*]"
    executors: Annotated[int, Field(ge=1, le=1000)] = 1
    conf: Annotated[dict[str, str] | None, Field(max_length=128)] = None
    trigger: Annotated[str | None, Field(max_length=64)] = None
    checkpoint: Annotated[str | None, Field(max_length=1024)] = None


class TemplateMetadata(Model):
    """Labels and annotations for the pods."""

    labels: Annotated[dict[str, str] | None, Field(max_length=64)] = None
    annotations: Annotated[dict[str, str] | None, Field(max_length=64)] = None


class Template(Model):
    """A pod template: what is not said here, the operator fills in."""

    metadata: TemplateMetadata | None = None
    spec: Annotated[
        dict[str, Any] | None,
        Field(description="A pod's spec. The container named consumer is the one that consumes."),
    ] = None


class Update(Model):
    """How a changed spec reaches the pods."""

    surge: Annotated[int, Field(ge=0, le=1, description="1: an extra pod joins while the others are replaced.")] = 0


class ConsumerGroupSpec(Model):
    """What a group consumes, how, and with how many members."""

    group_name: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=120,
            pattern=GROUP_NAME,
            description="The group at the broker; default: the object's name. Never changes.",
        ),
    ] = None
    cluster: Annotated[Cluster, Field(description="The RocketMQ that the group consumes from.")]
    subscriptions: Annotated[
        list[Subscription],
        Field(min_length=1, max_length=MOST_SUBSCRIPTIONS, description="The topics; the same for every member."),
    ]
    message_model: Annotated[
        MessageModel, Field(description="Clustering: members share the messages. Broadcasting: each gets all.")
    ] = MessageModel.CLUSTERING
    consume_mode: Annotated[ConsumeMode, Field(description="Side by side, or in the order of each queue.")] = (
        ConsumeMode.CONCURRENT
    )
    consume_from_where: Annotated[
        ConsumeFromWhere, Field(description="Where the group begins in a queue with no offset stored.")
    ] = ConsumeFromWhere.LAST_OFFSET
    consume_timestamp: Annotated[
        str | None,
        Field(max_length=40, json_schema_extra={"format": "date-time"}, description="RFC 3339; only with Timestamp."),
    ] = None
    initial_offset: Annotated[
        InitialOffset,
        Field(
            description="Strict: start offsets are written before the first pod. Native: as Java, new queues start at 0"
        ),
    ] = InitialOffset.STRICT
    allocation: Annotated[Allocation, Field(description="How queues are shared out.")] = Allocation()
    replicas: Annotated[
        int | None, Field(ge=0, le=MOST_REPLICAS, description="Members. Left out with autoscaling.")
    ] = None
    allow_idle_members: Annotated[bool, Field(description="Run more members than there are queues.")] = False
    autoscaling: Annotated[Autoscaling | None, Field(description="Replicas by lag.")] = None
    suspend: Annotated[bool, Field(description="Drain all members and run none, until it is false again.")] = False
    consume: Annotated[Consume, Field(description="How members consume.")] = Consume()
    rebalance: Annotated[Rebalance, Field(description="How queues change hands.")] = Rebalance()
    shutdown: Annotated[Shutdown, Field(description="How members leave.")] = Shutdown()
    update: Annotated[Update, Field(description="How changes reach the pods.")] = Update()
    engine: Annotated[Engine, Field(description="What runs in the pods.")] = Engine.WORKER
    worker: Annotated[Worker | None, Field(description="For engine Worker.")] = None
    spark: Annotated[Spark | None, Field(description="For engine Spark.")] = None
    template: Annotated[Template | None, Field(description="A pod template.")] = None
    deletion_policy: Annotated[
        DeletionPolicy, Field(description="What becomes of the group at the broker: offsets are data.")
    ] = DeletionPolicy.RETAIN


__all__ = ["Allocation", "ConsumerGroupSpec", "Engine", "Text"]
