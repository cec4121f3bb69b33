"""Rules about what runs in the pods.

What a Container does inside is its own business. The settings that are meant for our runtime have defaults there as
everywhere, and no rule could tell a default from a wish, so none asks.
"""

from collections.abc import Callable

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.names import GROUP
from rocketfleet.api.rule import Rule
from rocketfleet.api.rules.form import form, quoted
from rocketfleet.api.spec import GRACE_MARGIN, ConsumerGroupSpec, Engine, Spark, Worker
from rocketfleet.api.template import CONSUMER, Template, TemplateMetadata
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.enums import ExpressionType, MessageModel

_PART = "[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*"
FUNCTION = f"{_PART}:{_PART}"
MASTER = "local(\\[([0-9]+|[*])\\])?|k8s|spark://.+"
INTERVAL = "[1-9][0-9]* (millisecond|second|minute|hour)s?"
# Spark's settings that the manifest has fields for, or that keep the driver and its executors together.
OWN_CONF = (
    "spark.master",
    "spark.app.name",
    "spark.submit.deployMode",
    "spark.executor.instances",
    "spark.dynamicAllocation.enabled",
    "spark.kubernetes.namespace",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.container.image",
    "spark.kubernetes.executor.container.image",
)


def _spec(name: str, message: str, cel: str, holds: Callable[[ConsumerGroupSpec], bool], field: str) -> Rule:
    return Rule(name, "spec", message, cel, holds, field)


def _one_process(spec: ConsumerGroupSpec) -> bool:
    return spec.worker is None or spec.worker.processes == 1


def _consumers_with_image(template: Template | None) -> int:
    if template is None:
        return 0
    return sum(c.name == CONSUMER and c.image is not None for c in template.pod.containers or ())


def _grace(spec: ConsumerGroupSpec) -> bool:
    grace = None if spec.template is None else spec.template.pod.termination_grace_period_seconds
    return grace is None or spec.shutdown.drain_timeout_seconds + GRACE_MARGIN <= grace


def _path_or_config_map(program: Worker | Spark) -> bool:
    return program.path is None or program.code_config_map is None


def _one_filter(spec: ConsumerGroupSpec) -> bool:
    first = spec.subscriptions[0]
    return spec.engine is not Engine.SPARK or all(
        each.type is ExpressionType.TAG and each.expression == first.expression for each in spec.subscriptions
    )


def _own_conf_free(spark: Spark) -> bool:
    return all(name.startswith("spark.") and name not in OWN_CONF for name in spark.conf or ())


def _own_prefix(key: str) -> bool:
    return key.startswith(f"{GROUP}/")


def _labels_free(metadata: TemplateMetadata) -> bool:
    return not any(_own_prefix(key) for key in metadata.labels or ())


def _annotations_free(metadata: TemplateMetadata) -> bool:
    return not any(_own_prefix(key) for key in metadata.annotations or ())


def _restarts_on_failure(template: Template) -> bool:
    return template.pod.restart_policy in (None, "OnFailure")


_CONSUMER_WITH_IMAGE = f"c.name == '{CONSUMER}' && has(c.image)"
_CONTAINERS = "has(self.template) && has(self.template.spec) && has(self.template.spec.containers)"

ENGINE: tuple[Rule, ...] = (
    _spec(
        "worker-given",
        "engine Worker needs a handler: give worker.handler, or choose engine Container or Spark",
        "self.engine != 'Worker' || has(self.worker)",
        lambda spec: spec.engine is not Engine.WORKER or spec.worker is not None,
        ".worker",
    ),
    _spec(
        "worker-only-with-worker",
        "worker belongs to engine Worker: remove it, or set engine: Worker",
        "self.engine == 'Worker' || !has(self.worker)",
        lambda spec: spec.engine is Engine.WORKER or spec.worker is None,
        ".worker",
    ),
    _spec(
        "spark-given",
        "engine Spark needs a pipeline: give spark.pipeline and spark.checkpoint",
        "self.engine != 'Spark' || has(self.spark)",
        lambda spec: spec.engine is not Engine.SPARK or spec.spark is not None,
        ".spark",
    ),
    _spec(
        "spark-only-with-spark",
        "spark belongs to engine Spark: remove it, or set engine: Spark",
        "self.engine == 'Spark' || !has(self.spark)",
        lambda spec: spec.engine is Engine.SPARK or spec.spark is None,
        ".spark",
    ),
    _spec(
        "spark-is-one",
        "engine Spark runs one driver and scales by its executors: set spark.executors, and remove autoscaling and "
        "replicas (0 and 1 are allowed)",
        "self.engine != 'Spark' || (!has(self.autoscaling) && (!has(self.replicas) || self.replicas <= 1))",
        lambda spec: spec.engine is not Engine.SPARK or (spec.autoscaling is None and (spec.replicas or 0) <= 1),
        ".replicas",
    ),
    _spec(
        "spark-is-clustering",
        "engine Spark shares the messages out over its executors: set messageModel: Clustering",
        "!(self.engine == 'Spark' && self.messageModel == 'Broadcasting')",
        lambda spec: spec.engine is not Engine.SPARK or spec.message_model is not MessageModel.BROADCASTING,
        ".messageModel",
    ),
    _spec(
        "spark-is-concurrent",
        "engine Spark reads queues side by side, each in its order: remove consumeMode, or set it to Concurrent",
        "!(self.engine == 'Spark' && self.consumeMode == 'Orderly')",
        lambda spec: spec.engine is not Engine.SPARK or spec.consume_mode is not ConsumeMode.ORDERLY,
        ".consumeMode",
    ),
    _spec(
        "spark-has-one-filter",
        "engine Spark reads all topics with the same tags: give each subscription the same expression, of type Tag, "
        "and filter in the pipeline",
        "self.engine != 'Spark' || self.subscriptions.all(s, s.type == 'Tag' && "
        "s.expression == self.subscriptions[0].expression)",
        _one_filter,
        ".subscriptions",
    ),
    _spec(
        "container-given",
        f"engine Container needs your consumer: give template.spec.containers with one named {CONSUMER} and its image",
        f"self.engine != 'Container' || ({_CONTAINERS} && "
        f"self.template.spec.containers.exists_one(c, {_CONSUMER_WITH_IMAGE}))",
        lambda spec: spec.engine is not Engine.CONTAINER or _consumers_with_image(spec.template) == 1,
        ".template.spec.containers",
    ),
    _spec(
        "one-image",
        f"the image stands in worker.image and in the template's container {CONSUMER}: remove one of them",
        f"!(has(self.worker) && has(self.worker.image) && {_CONTAINERS} && "
        f"self.template.spec.containers.exists(c, {_CONSUMER_WITH_IMAGE}))",
        lambda spec: spec.worker is None or spec.worker.image is None or _consumers_with_image(spec.template) == 0,
        ".worker.image",
    ),
    _spec(
        "spark-one-image",
        f"the image stands in spark.image and in the template's container {CONSUMER}: remove one of them",
        f"!(has(self.spark) && has(self.spark.image) && {_CONTAINERS} && "
        f"self.template.spec.containers.exists(c, {_CONSUMER_WITH_IMAGE}))",
        lambda spec: spec.spark is None or spec.spark.image is None or _consumers_with_image(spec.template) == 0,
        ".spark.image",
    ),
    _spec(
        "config-has-one-process",
        "strategy Config assigns queues to pods, and a pod's processes would all take the same: set "
        "worker.processes: 1",
        "!(self.allocation.strategy == 'Config' && has(self.worker) && self.worker.processes > 1)",
        lambda spec: spec.allocation.strategy is not StrategyName.CONFIG or _one_process(spec),
        ".worker.processes",
    ),
    _spec(
        "broadcasting-has-one-process",
        "with Broadcasting each of a pod's processes would get every message: set worker.processes: 1",
        "!(self.messageModel == 'Broadcasting' && has(self.worker) && self.worker.processes > 1)",
        lambda spec: spec.message_model is not MessageModel.BROADCASTING or _one_process(spec),
        ".worker.processes",
    ),
    _spec(
        "grace-beyond-drain",
        f"the pod's grace period has to be {GRACE_MARGIN} s more than "
        "shutdown.drainTimeoutSeconds, or a drain is killed half way: raise it, or leave it out",
        "!(has(self.template) && has(self.template.spec) && has(self.template.spec.terminationGracePeriodSeconds)) || "
        f"self.shutdown.drainTimeoutSeconds + {GRACE_MARGIN}.0 <= "
        "double(self.template.spec.terminationGracePeriodSeconds)",
        _grace,
        ".template.spec.terminationGracePeriodSeconds",
    ),
    form("handler-form", "spec.worker.handler", FUNCTION, "write module:function, as orders:handle"),
    form("pipeline-form", "spec.spark.pipeline", FUNCTION, "write module:function, as orders:pipeline"),
    Rule(
        "path-or-config-map",
        "spec.worker",
        "the handler's module is in a directory of the image or in a ConfigMap: remove path or codeConfigMap",
        "!(has(self.path) && has(self.codeConfigMap))",
        _path_or_config_map,
        ".path",
    ),
    Rule(
        "spark-path-or-config-map",
        "spec.spark",
        "the pipeline's module is in a directory of the image or in a ConfigMap: remove path or codeConfigMap",
        "!(has(self.path) && has(self.codeConfigMap))",
        _path_or_config_map,
        ".path",
    ),
    form(
        "master-form",
        "spec.spark.master",
        MASTER,
        "write local[*], local[2], spark://host:port, or k8s for pods of this cluster",
    ),
    form("trigger-form", "spec.spark.trigger", INTERVAL, "write a number and its unit, as 10 seconds or 1 minute"),
    Rule(
        "conf-is-spark-s",
        "spec.spark",
        "conf has Spark's own settings, whose names begin with spark., but not those that the operator sees to: "
        "the master, the name, the number of executors, pods and images",
        f"!has(self.conf) || self.conf.all(name, name.startsWith('spark.') && "
        f"!(name in [{', '.join(quoted(name) for name in OWN_CONF)}]))",
        _own_conf_free,
        ".conf",
    ),
    Rule(
        "labels-free",
        "spec.template.metadata",
        f"labels under {GROUP}/ are the operator's own: choose another prefix",
        f"!has(self.labels) || self.labels.all(key, !key.startsWith('{GROUP}/'))",
        _labels_free,
        ".labels",
    ),
    Rule(
        "annotations-free",
        "spec.template.metadata",
        f"annotations under {GROUP}/ are the operator's own: choose another prefix",
        f"!has(self.annotations) || self.annotations.all(key, !key.startsWith('{GROUP}/'))",
        _annotations_free,
        ".annotations",
    ),
    Rule(
        "restarts-on-failure",
        "spec.template",
        "a drained consumer ends and has to stay ended: remove restartPolicy, or set it to OnFailure",
        "!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'OnFailure'",
        _restarts_on_failure,
        ".spec.restartPolicy",
    ),
)
