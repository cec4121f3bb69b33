"""RocketMQ's own command line, `mqadmin`, on a fleet: name server, credentials and TLS filled in.

Its log is kept in the fleet's directory. A call costs a JVM, and up to 3 s more: as it ends, RocketMQ's client waits
for a thread that looks up from its queue that seldom.
"""

import re
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, TextIO

from rocketfleet.devbroker.setup.config import CLUSTER, FleetSpec, Layout
from rocketfleet.devbroker.setup.plan import jvm_flags

MAIN_CLASS = "org.apache.rocketmq.tools.command.MQAdminStartup"

# mqadmin exits with 0 whatever happened. A failure shows as a stack trace, or as one of these.
_FAILURE = re.compile(
    r"^\s+at [\w.$]+\(|^(\w+\.)+\w*(Exception|Error)\b|^The sub command \S+ not exist|^\[error\]", re.MULTILINE
)


def mqadmin_argv(
    spec: FleetSpec, layout: Layout, arguments: Sequence[str], *, java: str, classpath: str, name_server: str
) -> list[str]:
    """The whole command. Every subcommand takes -n; one that the caller gives stays."""
    name_server_given = any(argument in ("-n", "--namesrvAddr") for argument in arguments)
    help_only = not arguments or arguments[0] == "help" or "-h" in arguments
    tail = [] if name_server_given or help_only else ["-n", name_server]
    return [java, *jvm_flags(spec, layout, "mqadmin"), "-cp", classpath, MAIN_CLASS, *arguments, *tail]


def has_failed(output: str) -> bool:
    """Whether what mqadmin printed tells of a failure."""
    return _FAILURE.search(output) is not None


def topic_create(name: str, queues: int, further: Sequence[str]) -> list[str]:
    return ["updateTopic", "-c", CLUSTER, "-t", name, "-r", str(queues), "-w", str(queues), *further]


def topic_delete(name: str, further: Sequence[str]) -> list[str]:
    return ["deleteTopic", "-c", CLUSTER, "-t", name, *further]


def group_create(name: str, further: Sequence[str]) -> list[str]:
    """mqadmin's own defaults forbid beginning at the oldest message, and broadcasts; auto-created groups may both."""
    defaults = [word for option in ("-m", "-d") if option not in further for word in (option, "true")]
    return ["updateSubGroup", "-c", CLUSTER, "-g", name, *defaults, *further]


def group_delete(name: str, further: Sequence[str]) -> list[str]:
    return ["deleteSubGroup", "-c", CLUSTER, "-g", name, *further]


def relay(command: Sequence[str], environment: Mapping[str, str], out: TextIO, err: TextIO) -> bool:
    """Run mqadmin, pass on what it prints as it prints it, and say whether it succeeded."""
    kept: deque[str] = deque(maxlen=500)

    def copy(source: IO[str], target: TextIO) -> None:
        for line in source:
            kept.append(line)
            target.write(line)
            target.flush()

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=dict(environment)
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = threading.Thread(target=copy, args=(process.stderr, err))
        errors.start()
        try:
            copy(process.stdout, out)
        except BaseException:
            process.kill()
            raise
        finally:
            errors.join()
    return process.returncode == 0 and not has_failed("".join(kept))
