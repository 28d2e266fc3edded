"""Questions about a log, understood and answered by rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from knowledge.core.domain.wording import rough_time
from knowledge.reading.failures.explaining import SHOWN, Explanation
from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.logs.figures import LogFigures
from knowledge.reading.logs.line_forms import LogPoint
from knowledge.reading.logs.silence import stalled

LONGEST_QUESTION = 300
CHANGED = 0.02  # of the loss; less is no change
ENOUGH = 8  # losses; fewer tell no trend
QUESTIONS = (
    "Why did it fail?",
    "How far is it?",
    "How fast is it?",
    "Is the loss falling?",
    "When does it end?",
    "Which warnings are there?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """Facts besides the log; all of them may be unknown.

    left_s: what the portal itself expects, which goes before the log. silent_s: since the last word of a
    training that runs. unheard_s: since its node was last heard of, if that is silent: what the log says is
    then no more than what was known last.
    """

    state: str = ""
    ended: bool = False
    explanation: Explanation | None = None
    left_s: float | None = None
    silent_s: float | None = None
    unheard_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswer:
    """An answer with the lines that it comes from.

    topic: empty where no rule understood the question.
    """

    topic: str
    text: str
    lines: Sequence[LogLine] = ()


def ask(question: str, log: LogFigures, facts: LogFacts, *, note: str = "") -> LogAnswer:
    """Answer by the first rule whose words stand in the question.

    note: of the log that was read, added to answers that come from it.
    """
    lowered = question[:LONGEST_QUESTION].casefold()
    topic = next((topic for topic, words in _WORDS.items() if words.search(lowered)), "")
    if not topic:
        return LogAnswer(topic="", text=f"No rule understands this question. Ask for example: {_known()}")
    text, lines = _ANSWERS[topic](log, facts)
    text += note if topic not in _NOT_OF_THE_LOG else ""
    return LogAnswer(topic=topic, text=text, lines=[LogLine(n, t.strip()[:SHOWN]) for n, t in lines])


def _known() -> str:
    return " ".join(QUESTIONS)


_Answer = tuple[str, Sequence[LogLine]]


def _why(_: LogFigures, facts: LogFacts) -> _Answer:
    found = facts.explanation
    if found is not None:
        return f"{found.sentence} {found.remedy}", [found.line] if found.line else []
    return (f"It has not failed: it {_now(facts.state)}." if facts.state else "No failure is known."), []


def _now(state: str) -> str:
    return {"succeeded": "has succeeded", "failed": "has failed", "cancelled": "was cancelled"}.get(
        state, f"is {state}"
    )


def _warnings(log: LogFigures, _: LogFacts) -> _Answer:
    if not log.warnings_count:
        return "No line of the log is a warning.", []
    many = log.warnings_count > len(log.warnings)
    first = f", the first {len(log.warnings)} of them below" if many else ""
    lines = "1 line is a warning" if log.warnings_count == 1 else f"{log.warnings_count:,} lines are warnings"
    return f"{lines}{first}.", log.warnings


def _loss(log: LogFigures, _: LogFacts) -> _Answer:
    losses = log.losses
    if not losses:
        return "No line of the log has a loss.", []
    bad = next((one for one in losses if not math.isfinite(one.loss or 0.0)), None)
    if bad is not None:
        return "No: the loss became infinite or not a number.", [bad.line]
    first, last = losses[0], losses[-1]
    ends = [first.line] if len(losses) == 1 else [first.line, last.line]
    if len(losses) < ENOUGH:
        return f"Too few lines have a loss to tell; the last one is {last.loss:.4g}.", ends
    quarter = len(losses) // 4
    begun, before, now = (
        _median(part) for part in (losses[:quarter], losses[-2 * quarter : -quarter], losses[-quarter:])
    )
    trend = f"from {begun:.4g} in the first quarter of its lines to {now:.4g} in the last one"
    if now > begun * (1 + CHANGED):
        return f"No: the loss rises, {trend}.", ends
    if now > begun * (1 - CHANGED):
        return f"No: the loss stays about the same, {trend}.", ends
    still = "and still falls" if now < before * (1 - CHANGED) else "but hardly changes any more"
    return f"Yes: the loss fell {trend}, {still}.", ends


def _median(points: Sequence[LogPoint]) -> float:
    return median(one.loss for one in points if one.loss is not None)


def _far(log: LogFigures, facts: LogFacts) -> _Answer:
    at = log.furthest
    if at is None or at.step is None:
        return "No line of the log has a step yet.", [log.last] if log.last else []
    if log.total:
        what = "epoch" if log.by_epochs else "step"
        text = f"It came to {what} {at.step:,} of {log.total:,}, {100 * at.step / log.total:.0f} %."
    else:
        text = f"It came to step {at.step:,}; the log does not say of how many."
    still = stalled(log.points, facts.silent_s)
    return (text, [at.line]) if still is None else (f"{text} {still[0]}", [at.line, still[1].line])


def _end(log: LogFigures, facts: LogFacts) -> _Answer:
    if facts.ended:
        return f"It has ended: it {_now(facts.state)}.", [log.last] if log.last else []
    at = log.furthest
    lines = [at.line] if at else []
    if facts.unheard_s is not None:
        return f"{_unheard(facts.unheard_s)} so its end is not known.", lines
    if facts.left_s is not None:
        return f"It should end in {rough_time(facts.left_s)}.", lines
    if (left := log.remaining_s) is not None:
        return f"At the speed of its last steps it should end in {rough_time(left)}.", lines
    lacks = "its speed" if log.total else "of how many steps it is"
    if not log.total and not log.counts_per_s:
        lacks = "its speed and its number of steps"
    return f"The log does not tell {lacks}, so its end is not known.", lines


def _unheard(seconds: float) -> str:
    return f"Nothing was heard of its node for {rough_time(seconds)},"


def _fast(log: LogFigures, facts: LogFacts) -> _Answer:
    rate, tokens = log.steps_per_s or log.counts_per_s, log.tokens_per_s
    rates = []
    if tokens and tokens.tokens_per_s:
        rates.append(f"{tokens.tokens_per_s:,.0f} tokens/s in its last line")
    if rate:
        many, one = ("epochs", "an epoch") if not log.steps_per_s else ("steps", "a step")
        rates.append(f"{rate:.3g} {many}/s" if rate >= 1 else f"{1 / rate:.3g} s {one}")
    at = tokens or (log.furthest if rate else None)
    if not rates or at is None:
        return "No line of the log tells how fast it is.", []
    if facts.unheard_s is not None:
        return f"{_unheard(facts.unheard_s)} before that it made {', '.join(rates)}.", [at.line]
    return f"It makes {', '.join(rates)}.", [at.line]


_WORDS: Mapping[str, re.Pattern[str]] = {
    topic: re.compile(words)
    for topic, words in (
        (
            "failure",
            r"\bwhy\b(?!.*\bslow)|\bfail|\berror|\bcrash|\bwrong\b|\bbroke|\bdied\b|\bexception|\bkilled\b",
        ),
        ("warnings", r"\bwarn"),
        ("loss", r"\bloss|\bconverg|\blearns?\b|\blearning\b|\bdiverg|\bnan\b"),
        (
            "end",
            r"\bwhen\b|\bfinish|\bend(?:s|ing)?\b|\bleft\b|\bremain|\beta\b|\bhow long\b|\bready\b|\bdone\b",
        ),
        ("progress", r"\bfar\b|\bprogress|\bsteps?\b|\bepochs?\b|\bper ?cent|%"),
        ("speed", r"\bfast|\bspeed|\bslow|\brate\b|\bthroughput|\btokens?\b|\bquick"),
    )
}
_NOT_OF_THE_LOG = {"failure"}
_ANSWERS: Mapping[str, Callable[[LogFigures, LogFacts], _Answer]] = {
    "failure": _why,
    "warnings": _warnings,
    "loss": _loss,
    "end": _end,
    "progress": _far,
    "speed": _fast,
}
TOPICS = tuple(_ANSWERS)
