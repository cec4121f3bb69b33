"""The budget against the pods that it is about."""

from tests.unit.controller.model_parts import group_of

from rocketfleet.controller.resources.disruption_budget import disruption_budget
from rocketfleet.controller.resources.pod import Defaults, build


def test_the_budget_covers_exactly_the_group_s_pods() -> None:
    group = group_of()
    budget = disruption_budget(group, 3)
    assert budget["metadata"]["name"] == "orders-consumers"
    assert budget["spec"]["minAvailable"] == 3
    assert "maxUnavailable" not in budget["spec"], "Kubernetes takes one or the other"
    labels = build(group, 0, "abc", Defaults("worker:1"))["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
