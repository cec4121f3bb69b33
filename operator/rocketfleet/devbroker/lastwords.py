"""What a JVM said before it died, cut down to the lines that say why.

A JVM that cannot start, and most exceptions, speak in the output. A broker that finds its configuration wrong may end
without a word there, after a line with ERROR in one of its logs.
"""

import re
from collections.abc import Iterable

_NOISE = re.compile(
    r"^\s*at \S+\(|^\s*\.\.\. \d+ more$|^\s*Suppressed: |^\s*$"
    r"|^Picked up |^load config properties|^OpenJDK .* warning|^WARNING:|boot success|^SLF4J"
)
_TELLING = re.compile(
    r"\w+(Exception|Error)\b|^Caused by: |(?i:cannot|could not|failed|invalid|unrecognized|illegal|no space|must be)"
)
_LOGGED_ERROR = re.compile(r"^\d{4}-\S+ \S+ ERROR \S+ - (.*)", re.MULTILINE)


def last_words(output: str, logs: Iterable[str] = (), *, lines: int = 3) -> list[str]:
    """The last lines of the output that tell of trouble; if none do, errors in logs; else the last lines there are."""
    spoken = [line.strip() for line in output.splitlines() if not _NOISE.search(line)]
    telling = [line for line in spoken if _TELLING.search(line)]
    chosen = telling or list(dict.fromkeys(error for log in logs for error in _LOGGED_ERROR.findall(log))) or spoken
    return [line if len(line) <= 300 else line[:297] + "…" for line in chosen[-lines:]]
