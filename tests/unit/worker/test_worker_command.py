"""What the command makes of options, variables and the settings file, and how it refuses."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.cli.commands.worker import worker
from rocketfleet.controller.resources.worker_settings import settings_of
from rocketfleet.worker.configuration import settings, settings_file
from rocketfleet.worker.configuration.setting_table import SETTINGS, Kind, Setting

ENVIRONMENT = {name: None for name in os.environ if name.startswith("ROCKETFLEET_")}


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(worker, list(arguments), env={**ENVIRONMENT, **environment})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def shown(*arguments: str, **environment: str) -> dict[str, Any]:
    code, out, err = run("--show-settings", *arguments, **environment)
    assert code == 0, err
    content: dict[str, Any] = json.loads(out)
    return content


def test_an_option_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(
        json.dumps(
            {
                "groupName": "file",
                "subscriptions": [{"topic": "of-file"}],
                "consume": {"threads": 1, "batchSize": 1, "pullBatchSize": 1},
            }
        )
    )
    environment = {"ROCKETFLEET_SETTINGS": str(path), "ROCKETFLEET_BATCH_SIZE": "2", "ROCKETFLEET_PULL_BATCH_SIZE": "2"}
    content = shown("--pull-batch-size", "3", **environment)
    assert content["groupName"] == "file"
    assert [content["consume"][key] for key in ("threads", "batchSize", "pullBatchSize")] == [1, 2, 3]
    assert [one["topic"] for one in content["subscriptions"]] == ["of-file"]
    assert [one["topic"] for one in shown("--topic", "a", "--topic", "b", **environment)["subscriptions"]] == ["a", "b"]
    listed = shown(**environment, ROCKETFLEET_TOPICS="c=x||y;d=sql:e > 5")["subscriptions"]
    assert listed == [
        {"topic": "c", "expression": "x||y", "type": "Tag"},
        {"topic": "d", "expression": "e > 5", "type": "SQL92"},
    ]


SAMPLES: dict[Kind, tuple[str, Any]] = {
    Kind.TEXT: ("1970-01-01T00:01:00Z", "1970-01-01T00:01:00Z"),
    Kind.NUMBER: ("7", 7),
    Kind.SECONDS: ("7.5", 7.5),
    Kind.SWITCH: ("false", False),
    Kind.TEXTS: ("a;b", ["a", "b"]),
    Kind.SUBSCRIPTIONS: ("a", [{"topic": "a", "expression": "*", "type": "Tag"}]),
    Kind.QUEUES: ("t:b:1", [{"topic": "t", "broker": "b", "queueId": 1}]),
}
# So that what is given fits together.
BESIDES = {
    "consumeTimestamp": {"ROCKETFLEET_CONSUME_FROM_WHERE": "Timestamp"},
    "consumeFromWhere": {"ROCKETFLEET_CONSUME_TIMESTAMP": "1970-01-01T00:01:00Z"},
    "consume.threads": {"ROCKETFLEET_MAX_THREADS": "64"},
    "consume.maxThreads": {"ROCKETFLEET_THREADS": "1"},
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_every_setting_can_be_given_as_a_variable(setting: Setting) -> None:
    text, expected = (setting.choices[-1],) * 2 if setting.choices else SAMPLES[setting.kind]
    if setting.key == "groupName":
        text = expected = "g"
    environment = {"ROCKETFLEET_GROUP": "g", "ROCKETFLEET_TOPICS": "t", **BESIDES.get(setting.key, {})}
    content = shown(**{**environment, f"ROCKETFLEET_{setting.parameter.upper()}": text})
    section, _, name = setting.key.rpartition(".")
    assert (content[section] if section else content)[name] == expected


def test_choices_are_taken_whatever_their_case() -> None:
    content = shown("--group", "g", "--topic", "t", "--consume-mode", "orderly")
    assert content["consumeMode"] == "Orderly"


def test_a_wrong_choice_is_told_as_the_help_has_them() -> None:
    code, _, err = run("--group", "g", "--topic", "t", "--consume-mode", "orderly2")
    assert code == 2
    assert "'orderly2' is not one of Concurrent, Orderly" in err


def test_an_empty_variable_is_not_given() -> None:
    variables = {"ROCKETFLEET_TOPICS": "t", "ROCKETFLEET_THREADS": "", "ROCKETFLEET_HANDOVER": ""}
    assert shown("--group", "g", **variables) == shown("--group", "g", "--topic", "t")


def test_all_settings_are_shown_and_which_are_defaults() -> None:
    _, out, err = run("--show-settings", "--group", "g", "--topic", "t", "--threads", "3")
    content = json.loads(out)
    assert (content["consume"]["threads"], content["consume"]["batchSize"]) == (3, 1)
    assert content["allocation"]["strategy"] == "Balanced"
    defaults = err.removeprefix("not given, so the default: ").strip().split(", ")
    assert "consume.batchSize" in defaults
    assert not {"groupName", "subscriptions", "consume.threads", "consumeTimestamp"} & set(defaults)
    flat = settings_file.flatten(content)
    assert settings.consumer_settings(flat) == settings.consumer_settings(
        {"groupName": "g", "subscriptions": flat["subscriptions"], "consume.threads": 3}
    ), "what is shown is a settings file that means the same"


def test_a_worker_without_settings_is_a_pod_of_a_manifest_without_settings() -> None:
    manifest = ConsumerGroup.model_validate(
        {
            "metadata": {"name": "g"},
            "spec": {
                "cluster": {"nameServers": ["a:1"]},
                "subscriptions": [{"topic": "t"}],
                "worker": {"handler": "a:b"},
            },
        }
    )
    of_pod = settings_file.flatten(settings_of(manifest, 0))
    bare = {key: of_pod[key] for key in ("groupName", "subscriptions")}
    assert settings.consumer_settings(of_pod) == settings.consumer_settings(bare)
    assert settings.strategy(of_pod).name == settings.strategy(bare).name


def test_a_manifest_is_not_a_settings_file(tmp_path: Path) -> None:
    for text in ("apiVersion: rocketfleet.io/v1alpha1\nkind: ConsumerGroup\n", '{"apiVersion": "x", "spec": {}}'):
        path = tmp_path / "orders.yaml"
        path.write_text(text)
        code, _, err = run("--show-settings", "--settings", str(path))
        assert code == 2
        assert f"is a manifest: `rocketfleet run -f {path}` runs it" in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no consumer group"),
        (("--group", "g"), "no topic"),
        (("--group", "g", "--topic", "=x"), "names no topic"),
        (("--group", "g", "--topic", "t"), "no handler"),
        (("--group", "g", "--topic", "t", "--handler", "no_such_module_xyz:f"), "no module 'no_such_module_xyz'"),
        (("--group", "g", "--topic", "t", "--queue", "x"), "topic:broker:id"),
        (("--group", "g", "--topic", "t", "--threads", "x"), "--threads"),
        (("--group", "g", "--topic", "t", "--settings", "/absent.json"), "absent.json"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert said in err
    assert out == ""


LEAST = ("--group", "g", "--topic", "t", "--handler", "json:dumps", "--name-server", "127.0.0.1:9")


@pytest.mark.parametrize("variable", ["ROCKETFLEET_ACCESS_KEY", "ROCKETFLEET_SECRET_KEY"])
def test_half_a_credential_is_refused_and_not_shown(variable: str) -> None:
    code, _, err = run(*LEAST, **{variable: "half-of-it"})
    assert code == 2
    assert "incomplete" in err
    assert "half-of-it" not in err


def test_a_credentials_file_and_a_token_file_that_are_no_good(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("accessKey: half-of-it\n")
    code, _, err = run(*LEAST, ROCKETFLEET_CREDENTIALS_FILE=str(path))
    assert code == 2
    assert "has no secretKey" in err
    assert "half-of-it" not in err
    path.write_text("\n")
    code, _, err = run(*LEAST, "--token-file", str(path))
    assert code == 2
    assert "must hold the control token" in err


def test_an_address_that_cannot_be_had_is_a_sentence() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        code, _, err = run(*LEAST, ROCKETFLEET_BIND_PORT=str(held.getsockname()[1]))
    assert code == 2
    assert "cannot listen on 127.0.0.1" in err


def test_in_json_even_a_refusal_is_json() -> None:
    process = subprocess.run(
        [sys.executable, "-c", "from rocketfleet.cli.main import main; main()", "worker", "--log-format", "json"],
        env={name: value for name, value in os.environ.items() if not name.startswith("ROCKETFLEET_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    line = json.loads(process.stderr)
    assert line["level"] == "ERROR"
    assert "no consumer group" in line["message"]


def test_a_worker_needs_only_the_base_package() -> None:
    code = (
        "import sys, rocketfleet.cli.commands.worker, rocketfleet.worker.process, rocketfleet.worker.processes.parent\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for package in ("pydantic", "kopf", "kubernetes", "aiohttp", "yaml", "rich", "requests", "prometheus_client"):
        assert f"'{package}'" not in loaded


def test_the_control_ports_variable_is_not_the_one_kubernetes_sets_for_a_service() -> None:
    code, _, err = run("--show-settings", "--group", "g", "--topic", "t", ROCKETFLEET_PORT="tcp://10.0.0.1:80")
    assert code == 0, err


def test_the_documentation_names_every_option_variable_and_key() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "worker.md").read_text()
    for parameter in worker.params:
        if isinstance(parameter, click.Option) and not parameter.hidden and parameter.name != "show_settings":
            option = max(parameter.opts + parameter.secondary_opts, key=len).replace("--no-auto", "--auto")
            assert f"`{option}`" in text, option
            if parameter.allow_from_autoenv and parameter.envvar is None:
                assert f"ROCKETFLEET_{parameter.name.upper()}" in text, option
    for setting in SETTINGS:
        assert f"`{setting.key}`" in text
