"""The figures in one line of a training's log, in the forms of common trainers."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from knowledge.reading.failures.troubled_lines import LONGEST, LogLine

_BAR = re.compile(r"(?<![\d/])(\d{1,9})/(\d{1,9}) \[(\d{1,4}(?::\d\d){1,2})<")
_NOTEBOOK = re.compile(r"\[ ?(\d{1,9})/(\d{1,9}) (\d{1,4}(?::\d\d){1,2}) ?<")  # the trainer's table in one
_STEP = re.compile(
    r"\b(?:step|iter|iteration)s?\s{0,8}[:=]?\s{0,8}(\d{1,9})(?:\s{0,8}(?:/|of)\s{0,8}(\d{1,9}))?\b", re.I
)
_FIELDS = re.compile(
    r"\bcurrent_steps\"?: ?(\d{1,9}), ?\"total_steps\"?: ?(\d{1,9})"
    r"|\bglobal_step/max_steps['\"]: ?['\"](\d{1,9})/(\d{1,9})"
)
_BRACKETS = re.compile(r"[\[(]\s{0,8}(\d{1,9})\s{0,4}/\s{0,8}(\d{1,9})[\])]")
_EPOCH = re.compile(r"\bepoch\s?[:#]?\s?[\[(]?\s?(\d{1,6})(?:\s?/\s{0,4}(\d{1,6}))?(?![\d.])", re.I)
_LOSS = re.compile(
    r"(?<!validation )(?<!eval )(?<![\w-])(?:train_|train/|lm )?loss['\"]?\s?[:=]?\s?['\"]?"
    r"(nan|-?inf|-?\d{1,20}(?:\.\d{0,20})?(?:e[-+]?\d{1,3})?)(?![\w.])",
    re.I,
)
_TOKENS = re.compile(r"(?<![\d,.])(\d[\d,]{0,14}(?:\.\d{1,9})?) ?(?:tokens/s\b|tok/s\b)")
_STAMP = re.compile(
    r"(?<![\d/])(?:(?P<date>\d{4}([-/])\d\d\2\d\d)|(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4}))"
    r"[T ](?P<clock>\d\d:\d\d:\d\d)"
    r"|^\W{0,8}(?P<short>\d\d/\d\d) (?P<time>\d\d:\d\d:\d\d)"  # of mmengine: no year
)
_ANY_YEAR = 2024  # it has a 29 February
_STAMPED = 80  # characters in which a line's moment stands
_ELAPSED = re.compile(
    r"['\"]elapsed_time['\"]: ?['\"](?:(?P<days>\d{1,3}) days?, )?"
    r"(?:(?P<clock>\d{1,3}:\d\d:\d\d)|(?P<units>\d{1,6}[dhms](?: \d{1,2}[hms]){0,3}))['\"]"
)
_TOOK = re.compile(  # an epoch, in brackets or behind a word
    r"[\[(]\s?(?P<bracketed>\d{1,6}(?:\.\d{1,6})?) ?s(?:ec(?:onds)?)?[\])]"
    r"|\b(?:time|took|duration)(?: taken)?\W{1,3}(?P<worded>\d{1,6}(?:\.\d{1,6})?) ?s(?:ec(?:onds)?)?\b",
    re.I,
)
_PACE = re.compile(
    r"elapsed time per iteration \(ms\): ?(?P<elapsed_ms>\d{1,9}(?:\.\d{1,6})?)"
    r"|\btime:? ?(?P<time_ms>\d{1,9}(?:\.\d{1,6})?) ?ms\b"
    r"|\biter time \(s\): ?(?P<s>\d{1,9}(?:\.\d{1,6})?)"
    r"|\b(?:it|iters?|steps?)/sec:? {0,4}(?P<rate>\d{1,9}(?:\.\d{1,6})?)"
    r"|\btrain_speed\((?:iter/s\)['\"]: ?['\"]?(?P<iter_s>\d{1,9}(?:\.\d{1,9})?)"
    r"|s/it\)['\"]: ?['\"]?(?P<s_iter>\d{1,9}(?:\.\d{1,9})?))",
    re.I,
)
_TOTAL = re.compile(
    r"\btotal (?:optimization |training )?steps\s?[:=]\s?(\d[\d,]{0,11})|\btraining\W{1,5}iters: (\d{1,9})",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPoint:
    """The figures of one line; None for those that it lacks.

    epoch: set where the steps are those of an epoch, or where the line tells of no step but of `epochs`.
    seconds: since some fixed moment. pace: steps a second, as the line itself says. took_s: the seconds that
    it tells beside such an epoch.
    """

    line: LogLine
    step: int | None = None
    total: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    loss: float | None = None
    seconds: float | None = None
    tokens_per_s: float | None = None
    pace: float | None = None
    took_s: float | None = None


def point_of(line: LogLine) -> LogPoint | None:
    """Read a line; of one that was written over and over, its last state."""
    text = _looked_at(line.text)
    loss, bar = _LOSS.search(text), _last(_BAR, text) or _NOTEBOOK.search(text)
    step, total = _count(text, bar, has_loss=loss is not None)
    took = _TOOK.search(text)
    epoch = _EPOCH.search(text)
    whole = epoch is not None and epoch[2] is not None and step is None and (loss or took)
    if step is None and not loss and not whole:
        return None
    if not whole and total is None:
        epoch = None
    tokens = _TOKENS.search(text)
    return LogPoint(
        line=line,
        step=step,
        total=total,
        epoch=int(epoch[1]) if epoch else None,
        epochs=int(epoch[2]) if epoch and epoch[2] else None,
        loss=float(loss[1]) if loss else None,
        seconds=_elapsed(bar[3]) if bar else _moment(text),
        tokens_per_s=float(tokens[1].replace(",", "")) if tokens else None,
        pace=_pace(text),
        took_s=float(took["bracketed"] or took["worded"]) if took and whole else None,
    )


def _looked_at(text: str) -> str:
    """The part of a line that is read: its beginning, or the last state of a bar.

    Of a dictionary both ends are read.
    """
    end = text[LONGEST:][-LONGEST:]
    if "%|" in text[-LONGEST:]:
        return text[-LONGEST:]
    return f"{text[:LONGEST]} {end}" if end and text.startswith("{") else text[:LONGEST]


def total_said(text: str) -> int | None:
    """The number of steps that a line before the training announces."""
    found = _TOTAL.search(text)
    return int((found[1] or found[2]).replace(",", "")) if found else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


def _count(text: str, bar: re.Match[str] | None, *, has_loss: bool) -> tuple[int | None, int | None]:
    """The step, and of how many.

    Without a bar and the word step, numbers in brackets count beside a loss: those of the most steps, but
    not those of an epoch.
    """
    if bar:
        return int(bar[1]), int(bar[2])
    if fields := _FIELDS.search(text):
        return int(fields[1] or fields[3]), int(fields[2] or fields[4])
    step = _STEP.search(text)
    if step and (has_loss or step[2]):
        return int(step[1]), int(step[2]) if step[2] else None
    epoch = _EPOCH.search(text)
    pairs = [
        (int(found[2]), int(found[1]))
        for found in (_BRACKETS.finditer(text) if has_loss else ())
        if epoch is None or not epoch.start() < found.start(1) < epoch.end()
    ]
    total, count = max(pairs, default=(None, None))
    return count, total


def _elapsed(clock: str) -> float:
    """`1:02:03` or `02:03` as seconds."""
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


def _in_units(spent: str) -> float:
    """`1h 2m 3s` as seconds."""
    return sum(
        int(part[:-1]) * {"d": 86_400, "h": 3_600, "m": 60, "s": 1}[part[-1]] for part in spent.split()
    )


def _moment(text: str) -> float | None:
    if found := _ELAPSED.search(text):
        spent = _elapsed(found["clock"]) if found["clock"] else _in_units(found["units"])
        return int(found["days"] or 0) * 86_400 + spent
    stamp = _STAMP.search(text[:_STAMPED])
    if stamp is None:
        return None
    if stamp["short"]:
        day = f"{_ANY_YEAR}-{stamp['short'].replace('/', '-')}"
    elif stamp["date"]:
        day = stamp["date"].replace("/", "-")
    else:
        day = f"{stamp['year']}-{stamp['month']}-{stamp['day']}"
    clock = stamp["clock"] or stamp["time"]
    try:
        return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _pace(text: str) -> float | None:
    found = _PACE.search(text)
    if found is None:
        return None
    if rate := found["rate"] or found["iter_s"]:
        return float(rate) or None
    seconds = (
        float(found["s"] or found["s_iter"] or 0)
        or float(found["elapsed_ms"] or found["time_ms"] or 0) / 1000
    )
    return 1 / seconds if seconds else None
