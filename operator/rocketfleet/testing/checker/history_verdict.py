"""What a history amounts to, in figures and in findings."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding

_SHOWN = 3  # findings of a family that are printed in full


@dataclass(frozen=True)
class HistoryVerdict:
    """`sent` and `handled` count messages; `excused` counts repetitions by what explains them."""

    sent: int
    handled: int
    findings: tuple[HistoryFinding, ...]
    excused: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return not self.findings

    def of(self, family: FindingFamily) -> tuple[HistoryFinding, ...]:
        """The findings of one family."""
        return tuple(finding for finding in self.findings if finding.family is family)

    @property
    def counts(self) -> dict[FindingFamily, int]:
        """How many findings each family has."""
        found = Counter(finding.family for finding in self.findings)
        return {family: found[family] for family in FindingFamily}

    @property
    def summary(self) -> str:
        """One line."""
        causes = ", ".join(f"{cause} {count}" for cause, count in sorted(self.excused.items()))
        figures = {family.value.replace(" ", "_"): str(count) for family, count in self.counts.items()}
        figures["repeated"] += f" (excused {sum(self.excused.values())}{': ' if causes else ''}{causes})"
        words = " ".join(f"{name}={figure}" for name, figure in figures.items())
        return f"{'ok' if self.ok else 'NOT OK'}: sent={self.sent} handled={self.handled} {words}"

    def __str__(self) -> str:
        lines = [self.summary]
        for family in FindingFamily:
            findings = self.of(family)
            lines += [str(finding) for finding in findings[:_SHOWN]]
            if len(findings) > _SHOWN:
                lines.append(f"{family}: {len(findings) - _SHOWN} more")
        return "\n".join(lines)
