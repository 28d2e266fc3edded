"""The report of a chaos run as text.

It holds the figures, the table of recoveries, every violation and one closing line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.judging.recovery import Row
from tests.harness.invariants import Violation


@dataclass
class Report:
    """Everything that is told at the end."""

    title: str
    capabilities: Sequence[str] = ()
    faults: int = 0
    jobs: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    moved: int = 0  # attempts that were stopped to go on with other GPUs
    requests: Mapping[str, Counter[str]] = field(default_factory=dict)
    recoveries: Sequence[Row] = ()
    violations: Sequence[Violation] = ()

    @property
    def verdict(self) -> str:
        """The closing line."""
        if not self.violations:
            return "no violation"
        kinds = Counter(f"{one.number} {one.says}" for one in self.violations)
        reported = ", ".join(f"{what} ({count})" for what, count in kinds.items())
        return f"{len(self.violations)} violation{'s' * (len(self.violations) > 1)}: {reported}"

    def lines(self) -> Iterator[str]:
        yield self.title
        yield from (f"  {capability}" for capability in self.capabilities)
        attempts = f"{_counts(self.outcomes)}, {self.moved} of them moved"
        yield f"{self.faults} faults; jobs: {_counts(self.jobs)}; attempts: {attempts}"
        yield "requests: " + "; ".join(f"{op}: {_counts(known)}" for op, known in self.requests.items())
        yield ""
        yield f"{'fault':36} {'count':>5} {'overlapped':>10} {'p50 s':>7} {'p95 s':>7} {'longest s':>9}"
        for row in self.recoveries:
            longest = max(row.seconds, default=float("nan"))
            counts = f"{row.kind:36} {row.count:5} {row.overlapped:10}"
            yield f"{counts} {row.p50:7.1f} {row.p95:7.1f} {longest:9.1f}"
        yield ""
        yield from map(str, self.violations)
        yield self.verdict


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"
