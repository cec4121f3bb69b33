"""The command that somebody typed, as it has to be typed to run inside the cluster. Pure.

A hint that forgets an option is worse than none: without `--to` it does not run, and without `--dry-run` it does what
was only to be looked at. So what was typed is repeated, but for what only means something on this machine: how to
reach the cluster, and files. A snapshot to read goes in by standard input, one to write comes out by standard output.

It runs in a pod of the group's own namespace, with an account that has the rights of whoever asks (docs/operations.md
makes it). Never in the operator's pod: whoever may `exec` there may all that the operator may.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME: Final = "desk"
ACCOUNT: Final = "rocketfleet-desk"
# As docs/operations.md has it: the account of examples/desk.yaml, and what the security level `restricted` asks for.
OVERRIDES: Final = {
    "spec": {
        "serviceAccountName": ACCOUNT,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {"name": NAME, "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
        ],
    }
}
IMAGE: Final = "OPERATOR_IMAGE"  # whoever reads it knows where theirs is
_ARGUMENTS: Final = "rocketfleet.arguments"
# Options about this machine, by the names of their values.
_HERE: Final = frozenset(
    {"namespace", "context", "kubeconfig", "name_server", "credentials_file", "ca_file", "cert_file", "key_file"}
)


def remember_arguments(context: click.Context, arguments: Sequence[str]) -> None:
    """Keep what was typed, for a hint."""
    context.meta[_ARGUMENTS] = list(arguments)


def arguments_of(context: click.Context) -> list[str]:
    """What was typed, without the program's name."""
    found: list[str] = context.meta.get(_ARGUMENTS, [])
    return found


def inside_the_cluster(command: click.Command, arguments: Sequence[str], namespace: str) -> str:
    """The whole line, but for the image. `arguments` begins with the command's name."""
    words: list[str] = [arguments[0]] if arguments else [command.name or "…"]
    redirected, reads, flags = "", False, set[str]()
    for parameter, name, value in _typed(command, arguments[1:]):
        flags.add(parameter.name or "")
        if parameter.name in _HERE:
            continue
        if parameter.name == "path" and value is not None:  # snapshot-offsets -o FILE
            if value != "-":
                redirected = f" > {shlex.quote(value)}"
        elif _is_snapshot(parameter, value):
            words += [name, "-"] if name else ["-"]
            redirected, reads = f" < {shlex.quote(value or '')}", True
        else:
            words += [word for word in (name, value) if word is not None]
    words += ["-n", namespace]
    asks = any(one.name == "yes" for one in command.params) and not flags & {"yes", "dry_run"}
    if asks and reads:  # standard input is the file, so nobody can be asked
        words.append("--dry-run")
    return f"{run_in(namespace, asks=asks and not reads)} -- rocketfleet {shlex.join(words)}{redirected}"


def run_in(namespace: str, *, asks: bool = False) -> str:
    """A pod for one command, which goes when the command has ended. `asks`: it wants a terminal."""
    terminal = "-it" if asks else "-i"
    overrides = shlex.quote(json.dumps(OVERRIDES))
    return (
        f"kubectl -n {namespace} run {NAME} {terminal} --rm --quiet --restart=Never --image={IMAGE} "
        f"--override-type=strategic --overrides={overrides} --command"
    )


def _is_snapshot(parameter: click.Parameter, value: str | None) -> bool:
    if value in (None, "-"):
        return False
    if parameter.name == "to":
        from rocketfleet.cli.moving_offsets.offset_target import FromFile, TargetError, parse_target

        try:
            return isinstance(parse_target(value or "", 4e9), FromFile)
        except TargetError:
            return False
    return parameter.name == "file"


def _typed(
    command: click.Command, arguments: Sequence[str]
) -> Iterator[tuple[click.Parameter, str | None, str | None]]:
    """Each parameter that was given: the parameter, the option's name as typed, its value."""
    options = {opt: one for one in command.params for opt in (*one.opts, *one.secondary_opts) if opt.startswith("-")}
    positions = [one for one in command.params if isinstance(one, click.Argument)]
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        option = options.get(name)
        short = options.get(word[:2]) if option is None and not word.startswith("--") else None
        if option is not None:
            is_flag = isinstance(option, click.Option) and option.is_flag
            yield option, name, value if equals else None if is_flag else next(words, "")
        elif short is not None and len(word) > 2:
            yield short, word[:2], word[2:]
        elif positions:
            yield positions.pop(0), None, word
