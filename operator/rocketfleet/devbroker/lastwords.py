"""What a JVM said before it died, cut down to the lines that say why."""

import re

_NOISE = re.compile(
    r"^\s*at \S+\(|^\s*\.\.\. \d+ more$|^\s*Suppressed: |^\s*$"
    r"|^Picked up |^load config properties|^OpenJDK .* warning|^WARNING:|boot success|^SLF4J"
)
_TELLING = re.compile(
    r"\w+(Exception|Error)\b|^Caused by: |(?i:cannot|could not|failed|invalid|unrecognized|illegal|no space|must be)"
)


def last_words(output: str, lines: int = 3) -> list[str]:
    """The last lines that tell of trouble; if none do, the last lines that say anything."""
    spoken = [line.strip() for line in output.splitlines() if not _NOISE.search(line)]
    telling = [line for line in spoken if _TELLING.search(line)]
    chosen = (telling or spoken)[-lines:]
    return [line if len(line) <= 300 else line[:297] + "…" for line in chosen]
