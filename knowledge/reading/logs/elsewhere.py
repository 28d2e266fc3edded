"""The log of a run elsewhere: all that can be asked of it, without a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from knowledge.reading.failures.explaining import FailureFacts, explain_failure
from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.logs.figures import MOST_POINTS, LogFigures, read_figures
from knowledge.reading.logs.formats import Shapes, UnknownForm, unknown_forms
from knowledge.reading.logs.questions import QUESTIONS, LogAnswer, LogFacts, ask

LARGEST_LOG = 2_000_000  # bytes; the end of a longer one says as much
ARCHIVE = (b"PK\x03\x04", b"\x1f\x8b")  # how a zip and a gzip begin
MOST_UNKNOWN = 0.1  # of the characters; a log in another encoding has fewer


class UnreadableLog(ValueError):
    """The text is no log; the message says why and what would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogElsewhere:
    """The contents of a log: an answer to each known question, and the speed.

    unknown_forms: those of its lines, where no step was found.
    """

    answers: dict[str, LogAnswer]
    steps_per_s: float | None
    tokens_per_s: float | None
    unknown_forms: Sequence[UnknownForm] = ()

    def rate(self, tokens_per_step: int) -> float | None:
        """Tokens per second of the whole run: as the log says, else by its steps."""
        if self.tokens_per_s:
            return self.tokens_per_s
        return self.steps_per_s * tokens_per_step if self.steps_per_s else None


def text_of(content: bytes) -> str:
    """A log as text. Raises UnreadableLog."""
    if len(content) > LARGEST_LOG:
        raise UnreadableLog(f"The log has more than {LARGEST_LOG // 1_000_000} MB; send its end alone.")
    text = content.decode("utf-8", errors="replace")
    if "\x00" in text or content.startswith(ARCHIVE) or text.count("\ufffd") > len(text) * MOST_UNKNOWN:
        raise UnreadableLog("This is no text; send the log as it was written to a terminal or file.")
    return text


def _lines(text: str) -> list[LogLine]:
    """The last lines with words, sought from the end: a flood of empty ones is free."""
    every = text.splitlines()
    worded = (LogLine(number, every[number - 1]) for number in range(len(every), 0, -1) if every[number - 1])
    return list(islice((line for line in worded if not line.text.isspace()), MOST_POINTS))[::-1]


def read_log(text: str, shapes: Shapes | None = None) -> LogElsewhere:
    """Ask a log everything that the rules and learnt forms of lines understand."""
    lines = _lines(text)
    found: LogFigures = read_figures(lines, shapes)
    failure = explain_failure(lines, FailureFacts())
    facts = LogFacts(explanation=failure if failure.is_known else None)
    reported = found.tokens_per_s
    return LogElsewhere(
        answers={question: ask(question, found, facts) for question in QUESTIONS},
        steps_per_s=found.steps_per_s,
        tokens_per_s=reported.tokens_per_s if reported else None,
        unknown_forms=unknown_forms(lines) if found.furthest is None else (),
    )
