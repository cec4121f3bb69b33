"""The options of every command that runs Spark: which master, with which settings, and what is shown of its log."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class SparkOptions:
    """What the options say."""

    master: str
    settings: Mapping[str, str]
    ship: bool
    log_level: str

    def check(self) -> None:
        """Refuse to go on where Spark is not installed, or lacks what it cannot do without."""
        from rocketfleet.spark.submitting.executor_pods import what_is_missing

        missing = what_is_missing(self.master, self.settings)
        if missing is not None:
            raise click.ClickException(missing)
        try:
            import pyspark  # noqa: F401 - only whether it is there
        except ModuleNotFoundError:
            raise click.ClickException(
                "Spark is not installed: in a checkout of Rocketfleet, pip install '.[spark]'"
            ) from None


def spark_options(command: F) -> F:
    """Give a command these options; it gets them as `on`."""

    @functools.wraps(command)
    def with_spark(*args: Any, settings: tuple[str, ...], **options: Any) -> Any:
        fields = {name: options.pop(name) for name in ("master", "ship", "log_level")}
        return command(*args, on=SparkOptions(settings=_settings(settings), **fields), **options)

    decorated: Any = with_spark
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.startswith("spark."):
            raise click.BadParameter(f"{text!r} is no setting: write spark.some.name=value", param_hint="--conf")
        settings[name] = value
    return settings


_OPTIONS = (
    click.option(
        "--master", default="local[*]", show_default=True, help="local[N], spark://host:port or k8s://address."
    ),
    click.option("--conf", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of Spark's. Repeatable."),
    click.option(
        "--ship/--no-ship",
        default=True,
        show_default=True,
        help="Send this package to the executors; not needed where their image has it, nor with local[N].",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG"]),
        default="FATAL",
        show_default=True,
        help="How much of Spark's own log is shown.",
    ),
)
