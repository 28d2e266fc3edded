"""Days and hours in a text, each with its place.

Their meaning together is decided in `times`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, time, timedelta

from portal.intents.core.clock import (
    EVENING,
    MORNING,
    NOON,
    NoSuchDate,
    day_of_month,
    nearest,
    next_weekday,
    on,
)
from portal.intents.core.lexicon import MONTHS, WEEKDAYS

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
_TH = r"(?:st|nd|rd|th)?"
_HEAD, _TAIL = r"(?<![\w.,/-])", r"(?![\w/]|-\w|[.,]\d)"


@dataclass(frozen=True, slots=True)
class Day:
    """A day that a text names.

    It is one date, two where the order of day and month is open, or none (`wrong`).

    clock: the hour that the word brings, such as 24:00 of `tonight` (None inside a 1-tuple).
    """

    start: int
    end: int
    dates: tuple[date, ...]
    kind: str
    clock: tuple[time | None] | None = None
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Hour:
    """A time of day; two where morning and afternoon are open."""

    start: int
    end: int
    clocks: tuple[time | None, ...]
    kind: str = "hour"


_YEAR = r"[\s,-]+(?P<y>20\d\d)"
_DAYS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(_HEAD + pattern + (_TAIL if kind != "iso" else "")))
    for kind, pattern in (
        ("iso", r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?=t\d\d:\d\d|(?!\w))"),
        ("named", rf"(?P<d>\d{{1,2}}){_TH}(?:\s+of)?[\s.-]*(?P<month>{_MONTH})\b\.?(?:{_YEAR})?"),
        ("named", rf"(?P<month>{_MONTH})\b\.?[\s-]+(?:the\s+)?(?P<d>\d{{1,2}}){_TH}(?!\s*(?::\d|am|pm"
            r"|\w*\s*epochs?|steps?))(?:,?\s+(?P<y>20\d\d))?"),
        ("numeric", r"(?P<a>\d{1,2})/(?P<b>\d{1,2})(?:/(?P<y>\d{4}|\d{2}))?(?!/)"),
        ("numeric", r"(?P<a>\d{1,2})\.(?P<b>\d{1,2})\.(?P<y>\d{4}|\d{2})?(?!\d)"),
        ("numeric", r"(?P<a>\d{1,2})-(?P<b>\d{1,2})-(?P<y>\d{4})"),
        ("weekday", rf"(?:(?:this|next|coming|the\s+coming|on)\s+)?(?P<weekday>{_WEEKDAY})(?P<week>"
            r"\s+(?:of\s+)?next\s+week)?"),
        ("weekday", rf"(?P<week>next\s+week)(?:\s+on)?\s+(?P<weekday>{_WEEKDAY})"),
        ("relative", r"(?P<word>(?:the\s+)?day\s+after\s+tomorrow|tomorrow|tmrw|tmr|tmw|today|yesterday"
            r"|tonight|(?:this|the)\s+(?:evening|afternoon|morning))"),
        ("nth", r"(?:the\s+)(?P<d>\d{1,2})(?:st|nd|rd|th)"),
    )
)  # fmt: skip
_HOURS = re.compile(
    r"(?<![\w.,/-])(?:(?P<h>\d{1,2})[:.](?P<min>[0-5]\d)(?::[0-5]\d)?(?:\s?(?P<half>[ap])\.?m\b\.?"
    r"|\s*h\b)?|(?P<h2>\d{1,2})\s?(?P<half2>[ap])\.?m\b\.?"
    r"|(?P<h3>\d{1,2})h(?P<min3>[0-5]\d)?\b(?!\s*of)|(?P<h4>\d{1,2})\s+(?:o'?\s?clock"
    r"|hours\s+sharp)(?:\s+(?:in\s+the\s+)?(?P<part4>morning|afternoon|evening))?"
    r"|(?:(?<=\bat )|(?<=\bby )|(?<=before )|(?<=until )|(?<=till )|(?<=around )|(?<=about ))"
    r"(?P<h6>\d{1,2})\s+in\s+the\s+(?P<part6>morning|afternoon|evening)"
    r"|(?P<half5>half|quarter)\s+past\s+(?P<h5>\d{1,2})(?:\s?(?P<ap5>[ap])\.?m\b\.?)?)(?![\w/]|:\w|-\w|\.\d)"
)
_ISO_HOUR = re.compile(r"(?<=\d)t(?P<h>\d{2}):(?P<min>[0-5]\d)(?::[0-5]\d)?")
_PARTS: tuple[tuple[re.Pattern[str], time | None], ...] = (
    (re.compile(r"(?<![\w-])(?:at\s+)?(?:noon|midday|lunch(?:\s?time)?)(?![\w-])"), NOON),
    (re.compile(r"(?<![\w-])(?:at\s+)?midnight(?![\w-])"), None),
    (re.compile(r"(?<![\w-])(?:early\s+|late\s+|first\s+thing\s+(?:in\s+the\s+)?)?morning(?![\w-])"),
     MORNING),
    (re.compile(r"(?<![\w-])(?:early\s+|late\s+)?(?:afternoon|arvo|evening|eve)(?![\w-])"), EVENING),
    (re.compile(r"(?<![\w-])(?:end\s+of\s+(?:the\s+)?(?:day|business)|eod|cob|close\s+of\s+business)"
                r"(?![\w-])"), EVENING),
    (re.compile(r"(?<![\w-])night(?![\w-])"), None),
)  # fmt: skip
_BARE = re.compile(
    r"(?<!\w)at\s+(?P<h>\d{1,2})(?=\s*(?:$|[,;.!?)](?!\d)|sharp|latest|tomorrow|today|next"
    r"|on\b|please|with\b|and\b))"
)
_AFTER_DAY = re.compile(
    rf"(?<!\w)(?:{_WEEKDAY}|tomorrow|today)\s+(?P<h>\d{{1,2}})(?=\s*(?:$|[,;.!?):](?!\d)|sharp|latest))"
)


def days(low: str, today: date) -> Iterator[Day]:
    """Every day that the text names."""
    for kind, pattern in _DAYS:
        for found in pattern.finditer(low):
            try:
                yield _day(kind, found, today)
            except NoSuchDate as wrong:
                yield Day(found.start(), found.end(), (), kind, wrong=str(wrong))


def _day(kind: str, found: re.Match[str], today: date) -> Day:
    start, end = found.span()
    if kind == "iso":
        return Day(start, end, (on(int(found["y"]), int(found["m"]), int(found["d"])),), kind)
    if kind == "named":
        return Day(start, end, (_dated(today, found["y"], MONTHS[found["month"]], int(found["d"])),), kind)
    if kind == "numeric":
        return Day(start, end, _either(today, int(found["a"]), int(found["b"]), found["y"]), kind)
    if kind == "nth":
        return Day(start, end, (day_of_month(today, int(found["d"])),), kind)
    if kind == "weekday":
        weekday = WEEKDAYS[found["weekday"]]
        if found["week"]:
            return Day(start, end, (today + timedelta(days=7 - today.weekday() + weekday),), kind)
        return Day(start, end, (next_weekday(today, weekday),), kind)
    return _relative(found, today)


def _relative(found: re.Match[str], today: date) -> Day:
    word = found["word"]
    if word == "yesterday":
        return Day(*found.span(), (today - timedelta(days=1),), "part")
    if "after" in word:
        return Day(*found.span(), (today + timedelta(days=2),), "relative")
    if word.startswith("t") and word not in ("today", "tonight") and not word.startswith(("this", "the")):
        return Day(*found.span(), (today + timedelta(days=1),), "relative")
    clock: tuple[time | None] | None = {"tonight": (None,), "today": None}.get(word, (EVENING,))
    if word.endswith("morning"):
        late = word.startswith("the ")  # by the morning: the next one
        return Day(
            *found.span(), (today + timedelta(days=late),), "relative" if not late else "part", (MORNING,)
        )
    return Day(*found.span(), (today,), "relative", clock)


def _dated(today: date, year: str | None, month: int, day: int) -> date:
    return on(_year(year), month, day) if year else nearest(today, month, day)


def _year(text: str) -> int:
    return int(text) + (2000 if len(text) == 2 else 0)


def _either(today: date, a: int, b: int, year: str | None) -> tuple[date, ...]:
    """Both readings of a numeric date, or the one that the calendar has."""
    found = []
    for day, month in dict.fromkeys(((a, b), (b, a))):
        try:
            found.append(_dated(today, year, month, day) if 1 <= month <= 12 else None)
        except NoSuchDate:
            continue
    known = tuple(one for one in found if one)
    if not known:
        raise NoSuchDate(f"{a}/{b} is no day of the calendar")
    return known


def hours(low: str) -> Iterator[Hour]:
    """Every time of day that the text names."""
    for found in (*_HOURS.finditer(low), *_ISO_HOUR.finditer(low)):
        if (clocks := _clocks(found.groupdict())) is not None:
            yield Hour(found.start(), found.end(), clocks)
    for pattern, clock in _PARTS:
        for found in pattern.finditer(low):
            yield Hour(
                found.start(), found.end(), (clock,), "part" if "noon" not in found.group() else "hour"
            )
    for found in (*_BARE.finditer(low), *_AFTER_DAY.finditer(low)):
        hour, start = int(found["h"]), found.start("h") if found.re is _AFTER_DAY else found.start()
        if 0 < hour <= 12:
            yield Hour(start, found.end(), (time(hour % 12), time(hour % 12 + 12)), "bare")
        elif hour < 24:
            yield Hour(start, found.end(), (time(hour),))


def _clocks(said: dict[str, str | None]) -> tuple[time | None, ...] | None:
    hour = int(next(said[name] for name in ("h", "h2", "h3", "h4", "h5", "h6") if said.get(name)) or 0)
    minute = (
        {"half": 30, "quarter": 15}[said["half5"] or ""]
        if said.get("half5")
        else int(said.get("min") or said.get("min3") or 0)
    )
    half = said.get("half") or said.get("half2") or said.get("ap5")
    if part := said.get("part4") or said.get("part6"):
        half = "a" if part == "morning" else "p"
    if hour == 24 and not minute and not half:
        return (None,)
    if hour > 23 or (half and not 0 < hour <= 12):
        return None
    if half:
        return (time(hour % 12 + 12 * (half == "p"), minute),)
    if (said.get("h4") or said.get("h5")) and 0 < hour <= 12:
        return (time(hour % 12, minute), time(hour % 12 + 12, minute))
    return (time(hour, minute),)
