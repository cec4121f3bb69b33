"""`rocketfleet operator`, as far as it goes without a cluster."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from rocketfleet.cli.main import main
from rocketfleet.cli.options.operator_process import own_namespace
from rocketfleet.controller.operator.leader import LeaseTimes
from rocketfleet.controller.operator.operator import Options, new_identity

OPERATOR = "rocketfleet.controller.operator.operator.run_operator"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, **environment: str) -> Options:
    given: list[Options] = []

    async def note(options: Options) -> None:
        given.append(options)

    monkeypatch.setattr(OPERATOR, note)
    result = CliRunner().invoke(main, ["operator", *arguments], env=environment)
    assert result.exit_code == 0, result.output
    return given[0]


def test_options_and_variables_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    by_option = run(
        monkeypatch,
        *("--namespace", "a", "--namespace", "b", "--worker-image", "w:1", "--workers", "3", "--lease-name", "l"),
        *("--lease-namespace", "n", "--bind", "0.0.0.0", "--port", "99", "--image-pull-secret", "s"),
    )
    by_variable = run(
        monkeypatch,
        ROCKETFLEET_NAMESPACES="a;b",
        ROCKETFLEET_WORKER_IMAGE="w:1",
        ROCKETFLEET_WORKERS="3",
        ROCKETFLEET_LEASE_NAME="l",
        ROCKETFLEET_LEASE_NAMESPACE="n",
        ROCKETFLEET_BIND="0.0.0.0",
        ROCKETFLEET_BIND_PORT="99",
        ROCKETFLEET_IMAGE_PULL_SECRETS="s",
    )
    for options in (by_option, by_variable):
        assert options.namespaces == ("a", "b")
        assert options.defaults.worker_image == "w:1"
        assert options.defaults.image_pull_secrets == ("s",)
        assert (options.workers, options.lease_name, options.lease_namespace) == (3, "l", "n")
        assert (options.bind, options.port) == ("0.0.0.0", 99)
    assert by_option.identity != by_variable.identity


def test_all_namespaces_is_the_default_and_the_lease_is_in_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    options = run(monkeypatch, "--worker-image", "w", POD_NAMESPACE="system")
    assert options.namespaces == ()
    assert options.lease_namespace == "system"


def test_limits_and_classes_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    options = run(
        monkeypatch,
        *("--worker-image", "w", "--operator-class", "blue", "--max-rolling-groups", "3"),
        *("--allowed-name-servers", ".rocketmq.svc", "--allowed-name-servers", "10.0.0.0/8"),
        *("--kube-api-qps", "5", "--kube-api-burst", "7"),
        *("--lease-duration", "30", "--renew-deadline", "20", "--retry-period", "5"),
    )
    assert (options.operator_class, options.defaults.most_rolling) == ("blue", 3)
    assert options.allowed_name_servers == (".rocketmq.svc", "10.0.0.0/8")
    assert (options.api_qps, options.api_burst) == (5.0, 7)
    assert options.lease_times == LeaseTimes(30.0, 20.0, 5.0)
    assert run(monkeypatch, "--worker-image", "w").defaults.most_rolling == 10


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--allowed-name-servers", "mq:9876"), "--allowed-name-servers: 'mq:9876' is no host"),
        (("--allowed-name-servers", " ; "), "would allow all"),
        (("--operator-class", "Blue"), "no ConsumerGroup can have the class 'Blue'"),
        (("--lease-duration", "5"), "has to be shorter"),
    ],
)
def test_what_cannot_work_is_said_before_it_starts(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, ["operator", "--worker-image", "w", *arguments])
    assert result.exit_code == 1
    assert said in result.output


def test_outside_a_pod_the_lease_is_in_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert own_namespace() == "default"


def test_two_processes_of_one_pod_are_two() -> None:
    assert new_identity("pod") != new_identity("pod")
    assert new_identity("pod").startswith("pod_")


def test_without_a_cluster_it_says_what_to_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = CliRunner().invoke(
        main, ["operator", "--worker-image", "w", "--port", "0"], env={"KUBECONFIG": str(tmp_path / "none")}
    )
    assert result.exit_code == 1
    assert "KUBECONFIG" in result.output + caplog.text


def test_the_lags_history_is_kept_where_it_is_told_and_not_half(monkeypatch: pytest.MonkeyPatch) -> None:
    options = run(
        monkeypatch,
        *("--worker-image", "w", "--lag-interval", "5", "--no-lag-per-queue", "--lag-history-topic", "lag"),
        *("--lag-history-name-server", "a:1;b:2", "--lag-history-every", "30"),
        ROCKETFLEET_ACCESS_KEY="key",
        ROCKETFLEET_SECRET_KEY="secret",
    )
    assert (options.lag.interval, options.lag.per_queue) == (5.0, False)
    history = options.lag.history
    assert history.wanted
    assert (history.topic, history.every) == ("lag", 30.0)
    assert history.cluster is not None
    assert history.cluster.credentials is not None
    assert history.cluster.credentials.access_key == "key"
    assert history.cluster.tls is None
    assert not run(monkeypatch, "--worker-image", "w").lag.history.wanted
    result = CliRunner().invoke(main, ["operator", "--worker-image", "w", "--lag-history-topic", "lag"])
    assert result.exit_code == 1
    assert "--lag-history-name-server" in result.output


def test_the_lags_history_may_be_behind_tls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authorities = tmp_path / "ca.pem"
    authorities.write_text("certificates")
    where = ("--worker-image", "w", "--lag-history-topic", "lag", "--lag-history-name-server", "a:1")
    for more, expected in ((("--lag-history-tls",), None), (("--lag-history-ca-file", authorities), str(authorities))):
        cluster = run(monkeypatch, *where, *map(str, more)).lag.history.cluster
        assert cluster is not None
        assert cluster.tls is not None
        assert cluster.tls.ca_file == expected
