"""Rules about how many members there are."""

from collections.abc import Callable

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.rule import Rule
from rocketfleet.api.spec import Autoscaling, ConsumerGroupSpec
from rocketfleet.wire.enums import MessageModel


def _spec(name: str, message: str, cel: str, holds: Callable[[ConsumerGroupSpec], bool], field: str) -> Rule:
    return Rule(name, "spec", message, cel, holds, field)


def _scaling(name: str, message: str, cel: str, holds: Callable[[Autoscaling], bool], field: str = "") -> Rule:
    return Rule(name, "spec.autoscaling", message, cel, holds, field)


SCALING: tuple[Rule, ...] = (
    _spec(
        "replicas-or-autoscaling",
        "autoscaling decides how many members there are: remove replicas and any HorizontalPodAutoscaler that writes "
        "it, or remove autoscaling",
        "!(has(self.replicas) && has(self.autoscaling))",
        lambda spec: spec.replicas is None or spec.autoscaling is None,
        ".replicas",
    ),
    _spec(
        "autoscaling-shares-work",
        "with Broadcasting every member gets every message, so more of them do not lessen the lag: give replicas "
        "in place of autoscaling",
        "!(has(self.autoscaling) && self.messageModel == 'Broadcasting')",
        lambda spec: spec.autoscaling is None or spec.message_model is not MessageModel.BROADCASTING,
        ".autoscaling",
    ),
    _spec(
        "autoscaling-shares-queues",
        "strategy Config ties queues to members, and those of a member that is scaled away would stand still: give "
        "replicas in place of autoscaling, or choose another strategy",
        "!(has(self.autoscaling) && self.allocation.strategy == 'Config')",
        lambda spec: spec.autoscaling is None or spec.allocation.strategy is not StrategyName.CONFIG,
        ".autoscaling",
    ),
    _scaling(
        "min-up-to-max",
        "minReplicas is more than maxReplicas: lower the one or raise the other",
        "self.minReplicas <= self.maxReplicas",
        lambda a: a.min_replicas <= a.max_replicas,
        ".minReplicas",
    ),
    _scaling(
        "a-target",
        "there is nothing to scale by: give targetLag, targetSeconds or both",
        "has(self.targetLag) || has(self.targetSeconds)",
        lambda a: a.target_lag is not None or a.target_seconds is not None,
    ),
)
