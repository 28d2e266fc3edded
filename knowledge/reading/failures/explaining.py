"""A failure's cause, the line that tells it, and its remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from knowledge.reading.failures.causes import CAUSES, FailureCause
from knowledge.reading.failures.likely_cause import likely_cause
from knowledge.reading.failures.loose_lines import loose_lines
from knowledge.reading.failures.not_finite import first_not_finite
from knowledge.reading.failures.own_reasons import OWN_REASONS
from knowledge.reading.failures.places import cause_by_place
from knowledge.reading.failures.process_ends import cause_of_ends
from knowledge.reading.failures.remedies import CPU, remedied
from knowledge.reading.failures.rules import CERTAIN, FailureRule
from knowledge.reading.failures.symptoms import SYMPTOMS
from knowledge.reading.failures.troubled_lines import (
    LogLine,
    TroubledLine,
    bare_message,
    error_name,
    troubled,
)
from trainer.protocol import Outcome

LAST_LINES = 2_000  # of a log, that are read
SHOWN = 300  # characters of a line
UNKNOWN = "unknown"  # the cause where no rule fits
CODE = "code-error"  # the cause of an error that tells no other
_CERTAIN = OWN_REASONS + CERTAIN
REPORTED = 0  # the number of the line that the node reported as the end
_NO_ERROR = {
    "SystemExit", "ChildFailedError", "CalledProcessError", "ProcessExitedException", "SignalException",
    "Stopped",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureFacts:
    """Facts besides the log.

    values: what the attempt ran with. fixed: what the user fixed of it. cause: what ended the job, where the
    scheduler did; the log tells nothing then.
    """

    outcome: str = ""
    reason: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of a failure.

    line: the one that tells the cause; None if none does. Its number is 0 if the log has no such line.
    unusual: where the cause is unknown, the lines that runs that succeeded do not have.
    """

    cause: FailureCause
    sentence: str
    line: LogLine | None
    changes: Mapping[str, Any]
    unusual: Sequence[LogLine] = ()

    @property
    def lines(self) -> Sequence[LogLine]:
        """The line that tells the cause, or the unusual ones."""
        return [self.line] if self.line else self.unusual

    @property
    def is_known(self) -> bool:
        """Was a cause found?"""
        return self.cause.name != UNKNOWN

    @property
    def remedy(self) -> str:
        return self.cause.remedy


def explain_failure(lines: Sequence[LogLine], facts: FailureFacts) -> Explanation:
    """Read the reported end, then the log.

    The first rule that fits names the cause.
    """
    if facts.cause:
        known = CAUSES[facts.cause]
        return Explanation(cause=known, sentence=known.sentence, line=None, changes={})
    lines = lines[-LAST_LINES:]
    reported = _reported(facts.reason)
    late, early = troubled(lines)
    match = (
        _by_rules(_CERTAIN, reported)
        or _cause_in(late)
        or _cause_in(early)
        or _by_error(reported)
        or _by_rules(SYMPTOMS, reported)
        or _by_end(reported)
    )
    cause, what, line = match or _without_errors(lines, facts.outcome)
    cause = _of_outcome(cause, facts)
    if line is not None:
        line = _in_log(line, lines, late, cause)
    return Explanation(
        cause=CAUSES[cause],
        sentence=CAUSES[cause].sentence.format(what),
        line=line and LogLine(line.number, line.text.strip()[:SHOWN]),
        changes=remedied(cause, facts.values, facts.fixed),
    )


def _without_errors(lines: Sequence[LogLine], outcome: str) -> tuple[str, str, LogLine | None]:
    """The cause where no line in the form of an error tells it."""
    if (known := _by_outcome(outcome)) != UNKNOWN:
        return known, "", None
    if line := first_not_finite(lines):
        return "loss-not-finite", "", line
    return _cause_in(loose_lines(lines)) or (UNKNOWN, "", None)


def _reported(reason: str) -> list[TroubledLine]:
    """The reported end as lines; each may tell the cause."""
    messages = [bare_message(text) for text in reason.splitlines()]
    return [TroubledLine(LogLine(REPORTED, text), text, error_name(text)) for text in messages if text]


Match = tuple[str, str, LogLine]


def _cause_in(found: Sequence[TroubledLine]) -> Match | None:
    return _by_rules(_CERTAIN, found) or _by_error(found) or _by_rules(SYMPTOMS, found) or _by_end(found)


def _by_end(found: Sequence[TroubledLine]) -> Match | None:
    end = cause_of_ends(one.message for one in found)
    return end and (end[0], "", found[end[1]].line)


def _by_rules(rules: Sequence[FailureRule], found: Sequence[TroubledLine]) -> Match | None:
    for cause, expression in rules:
        for one in found:
            if match := expression.search(one.message):
                return cause, _filled(cause, match), one.line
    return None


def _filled(cause: str, match: re.Match[str]) -> str:
    what = next((group for group in match.groups() if group), "")
    return what and (f" ({what.removeprefix('in ')})" if "{0}" in CAUSES[cause].sentence else "")


def _by_error(found: Sequence[TroubledLine]) -> Match | None:
    """The first error: what follows in a chain of tracebacks is its effect."""
    for one in found:
        if one.error == "AssertionError":
            return "assertion", "", one.line
        if one.error and one.error not in _NO_ERROR and not _is_symptom(one):
            cause = cause_by_place(one) or likely_cause(one.error, one.message, one.places)
            return (cause, "", one.line) if cause not in ("", CODE) else (CODE, one.error, one.line)
    return None


def _is_symptom(one: TroubledLine) -> bool:
    return any(rule.expression.search(one.message) for rule in SYMPTOMS)


def _by_outcome(outcome: str) -> str:
    return {
        Outcome.OOM.value: "gpu-memory",
        Outcome.LOST.value: "node-lost",
        Outcome.TIMEOUT.value: "silent",
        Outcome.KILLED.value: "killed",
    }.get(outcome, UNKNOWN)


def _of_outcome(cause: str, facts: FailureFacts) -> str:
    """The trainer knows best that memory ran out; the log may tell which."""
    if facts.outcome == Outcome.OOM and cause != "host-memory":
        cause = "gpu-memory"
    on_cpu = facts.values.get("gpu_model") == CPU
    return "host-memory" if cause == "gpu-memory" and on_cpu else cause


def _in_log(line: LogLine, lines: Sequence[LogLine], found: Sequence[TroubledLine], cause: str) -> LogLine:
    """Return the line of the log that says what was reported, if one does."""
    if line.number != REPORTED:
        return line
    same = next((one for one in reversed(lines) if line.text[:80] in one.text), None)
    match = _by_rules([rule for rule in _CERTAIN if rule.cause == cause], found)
    return same or (match[2] if match else line)
