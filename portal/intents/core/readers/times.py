"""Deadlines: until a day and an hour by the person's clock, or within a duration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, time, tzinfo

from portal.intents.core.clock import EVENING, Moment, NoSuchDate, after, moment
from portal.intents.core.lexicon import SECONDS
from portal.intents.core.numbers import COUNT, number
from portal.intents.core.readers.days import Day, Hour, days, hours
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

FIELD = "deadline_at"
DAY_ENDS = ("eod", "cob", "end of day", "end of the day", "close of business", "end of business")
_UNTIL = re.compile(
    r"(?<![\w-])(?:by|before|until|untill|till|til|due(?:\s+(?:by|on|at|in))?|(?:my|our"
    r"|the)?\s*deadline(?:\s*(?:is|:|=|of|on|by|at))*|(?:no|not)\s+later\s+than|(?:at\s+)?(?:the\s+"
    r")?latest(?:\s+(?:by|on|at))?"
    r"|(?:need(?:ed)?|want(?:ed)?|ready|done|finish(?:ed)?|have)(?:\s+(?:it|this|that|them|the\s+\w+"
    r"|done|ready|finished|back)){0,3}\s+(?:for|on|by|before|at|until)"
    r"|(?:needed|required|due|ready|finished|need\s+(?:it|this|that)(?:\s+(?:back|done|ready|finished))?)\s*,?"
    r"|(?:don't|do\s+not|not|never|must\s+not)\s+(?:\w+\s+){0,4}(?:past|beyond|after|later\s+than)"
    r"|(?:no|wait|sorry|actually|i\s+mean|make\s+(?:it|that)|or\s+rather|better|rather)\s*,?)\s*"
    r"(?:the\s+|about\s+|around\s+|on\s+|at\s+|next\s+|end\s+of\s+|say\s+|early\s+|late\s+|latest\s+"
    r"|is\s+|,\s*)*$"
)
_LATEST = re.compile(
    r"\s*,?\s*(?:sharp\s*,?\s*)?(?:at\s+the\s+(?:very\s+)?)?(?:latest|deadline|max|tops)(?!\s+"
    r"(?:model|version|data|file|one)\b)"
)
_NO_DEADLINE = re.compile(
    r"(?<!\w)(?:class|meeting|demo|call|presentation|lecture|conference|talk|appointment|holiday|exam|away"
    r"|export|born|released|begins?|opens?|closes?)\b[^,;.!?]{0,20}$|"
    r"(?<!\w)(?:since|from|after|starting|starts?|begin(?:ning)?|dated|of|over|every|last|recorded"
    r"|collected|uploaded|until\s+now|not\s+before|as\s+of|version|between|in|for\s+the|during"
    r"|on\s+the\s+data)\s+(?:the\s+|on\s+|at\s+)?$"
)
# "Do not start before Friday" sets no end; "I uploaded it on Friday" is past.
_NO_END = re.compile(
    r"(?:\bnot|n't|\bnever)\s+(?:\w+\s+){0,3}before\s+(?:the\s+|next\s+)?$"
    r"|\b(?:start|begin|launch)(?:ing)?\s+(?:(?:it|this|them|the\s+(?:job|run|training))\s+)?"
    r"(?:before|by|at|on|after|until)\s+(?:the\s+|next\s+)?$"
    r"|\b(?:uploaded|recorded|collected|started|created|added|changed|exported|wrote|got|received)\b[^,.!?]{0,60}\bon\s+$"
    r"|\b(?:written|recorded|collected|dated|expires?|expired|ends?)\s+(?:on|before|by|until)\s+$"
)
# A day that ends a clause is a deadline without "by", as in a telegram.
_AFTER_COMMA = re.compile(r"(?:[,;(/]|\s-)\s*$")
_APART = re.compile(r"\s*(?:$|[,;:.!?)/|+-]|please\b|and\b|thanks\b)")
_SEPARATOR = re.compile(
    r"[\s,]*(?:(?:at|on|in\s+the|in|around|about|by|say|the|that\s+is|i\.?e\.?|arvo|of|ca\.?"
    r"|or\s+so|@|-|\()[\s,:]*)*"
)
_DURATION_UNIT = r"(?:hours?|hrs?|h|minutes?|mins?|min|days?|d|weeks?|wks?)"
_SIZE = (
    rf"(?:half\s+an?\s+|an?\s+half\s+|an?\s+(?:couple\s+of\s+)?|(?:a\s+couple\s+of)\s+|{COUNT}\s*"
    r"(?:and\s+a\s+half\s+|1/2\s+)?[\s-]*)"
)
_LENGTH = (
    rf"(?P<size>{_SIZE})(?P<unit>{_DURATION_UNIT})(?P<and>\s+and\s+a\s+(?:half|quarter))?(?:(?:\s*,?\s*"
    r"(?:and\s+)?)(?P<more>\d+)\s*(?P<less>minutes?|mins?|m|hours?|hrs?|h))?(?P<glued>(?<=h)\d{2})?"
)
_WITHIN = re.compile(
    r"(?<![\w-])(?:with(?:in|in\s+the)|inside(?:\s+of)?|in|(?:deadline|due)(?:\s*(?:is|of|:|in))*"
    r")\s+(?:the\s+next\s+|next\s+)?(?:(?:under|less\s+than|at\s+most|max(?:imum)?\.?|about|around"
    rf"|roughly|no\s+more\s+than|up\s+to|just|only|exactly|~)\s*)?{_LENGTH}(?![\w]|\s+of\s+"
    r"(?:training|data))"
)
_FROM_NOW = re.compile(rf"(?<![\w.,])(?:at\s+most\s+)?{_LENGTH}\s+from\s+now(?!\s+on\b)(?!\w)")
_TAKES = re.compile(
    r"(?:takes?|took|taking|for|lasts?|runs?|ran|needs?|needed|costs?)\s*(?:me\s+|us\s+|about\s+"
    r"|at\s+most\s+|around\s+|up\s+to\s+|only\s+)*$"
)
_ANY_LENGTH = re.compile(rf"(?<![\w.,]){_LENGTH}(?!\w)")


def read(text: Sentence, now: datetime, zone: tzinfo) -> Iterator[Proposal]:
    """Proposals of a deadline; other durations and days only use their words up."""
    yield from _durations(text, now, zone)
    local = now.astimezone(zone)
    found_days = _widest(list(days(text.low, local.date())))
    found_hours = [
        h for h in _longest(list(hours(text.low))) if not any(d.start <= h.start < d.end for d in found_days)
    ]
    used: set[Hour] = set()
    for day in found_days:
        hour = _beside(text.low, day, found_hours)
        if hour is not None:
            used.add(hour)
        yield _proposal(text, day, hour, zone, local)
    for hour in found_hours:
        if hour not in used:
            yield from _alone(text, hour, zone, local)


def _durations(text: Sentence, now: datetime, zone: tzinfo) -> Iterator[Proposal]:
    for pattern in (_WITHIN, _FROM_NOW):
        for found in text.find(pattern):
            start, end = found.span()
            try:
                at = after(now, _seconds(found), zone)
                yield Proposal(field=FIELD, start=start, end=end, value=at.at, weight=4)
            except NoSuchDate as wrong:
                yield Proposal(field=FIELD, start=start, end=end, complaint=str(wrong), weight=4)
    for found in text.find(_ANY_LENGTH):
        if found["unit"] not in ("d", "h") or found["size"].strip()[-1:].isdigit():
            yield Proposal(field="", start=found.start(), end=found.end(), weight=2)


def _seconds(found: re.Match[str]) -> float:
    size, unit = found["size"].strip(" -"), SECONDS[found["unit"]]
    half = 0.5 if (found["and"] or "").endswith("half") else 0.25 if found["and"] else 0.0
    if "couple" in size:
        value = 2.0
    elif size.startswith("half") or size in ("a half", "an half"):
        value = 0.5
    elif size in ("a", "an"):
        value = 1.0
    else:
        extra = 0.5 if size.endswith(("and a half", "1/2")) else 0.0
        value = (number(size.removesuffix("and a half").removesuffix("1/2").strip(" -")) or 0.0) + extra
    rest = (
        int(found["more"] or 0) * (SECONDS.get(found["less"] or "min") or 60) + int(found["glued"] or 0) * 60
    )
    return (value + half) * unit + rest


def _widest(found: list[Day]) -> list[Day]:
    chosen: list[Day] = []
    for day in sorted(found, key=lambda d: (d.start - d.end, d.start)):
        if not any(day.start < other.end and other.start < day.end for other in chosen):
            chosen.append(day)
    return sorted(chosen, key=lambda d: d.start)


def _longest(found: list[Hour]) -> list[Hour]:
    chosen: list[Hour] = []
    for hour in sorted(found, key=lambda h: (h.start - h.end, h.start)):
        if not any(hour.start < other.end and other.start < hour.end for other in chosen):
            chosen.append(hour)
    return sorted(chosen, key=lambda h: h.start)


def _beside(low: str, day: Day, found: list[Hour]) -> Hour | None:
    """Return the hour after the day, else the one before it.

    A precise one goes before a part of the day.
    """
    end, best = day.end, None
    for hour in found:
        if hour.start >= end and _SEPARATOR.fullmatch(low, end, hour.start):
            best = hour if best is None or best.kind == "part" else best
            end = hour.end
    if best is not None:
        return best
    before = [h for h in found if h.end <= day.start and _SEPARATOR.fullmatch(low, h.end, day.start)]
    return before[-1] if before else None


def _proposal(text: Sentence, day: Day, hour: Hour | None, zone: tzinfo, local: datetime) -> Proposal:
    start = min(day.start, hour.start) if hour else day.start
    end = max(day.end, hour.end) if hour else day.end
    until = _UNTIL.search(text.low[:start])
    meant = bool(until or _LATEST.match(text.low, end))
    start = until.start() if until else start
    precise = hour is not None and hour.kind != "part"
    telegram = day.kind in ("iso", "named", "numeric", "relative") or (day.kind == "weekday" and precise)
    if day.kind in ("numeric", "part", "nth") and not meant:
        telegram = day.kind == "numeric" and bool(day.dates) and text.low[day.start : day.end].count("/") == 2
    telegram |= day.kind == "weekday" and bool(_AFTER_COMMA.search(text.low[: min(start, day.start)]))
    telegram = telegram and (precise or bool(_APART.match(text.low, end)))
    first = min(day.start, hour.start) if hour else day.start
    begins = text.low[: first + 3 * text.low.startswith("on ", first)]
    if _NO_END.search(begins) or (not meant and (not telegram or _NO_DEADLINE.search(text.low[:start]))):
        vague = day.kind == "weekday" or day.kind == "numeric"
        return Proposal(field="", start=start, end=end, weight=-8 if vague else 0)
    if day.wrong:
        return Proposal(
            field=FIELD, start=start, end=end, complaint=f"{day.wrong}; give another day", weight=4
        )
    clocks = hour.clocks if hour else day.clock or (EVENING,)
    return _moment_proposal(start, end, day.dates, clocks, zone, local, weak=not meant)


def _alone(text: Sentence, hour: Hour, zone: tzinfo, local: datetime) -> Iterator[Proposal]:
    """An hour without a day: today; the next morning or noon where that has passed."""
    until = _UNTIL.search(text.low[: hour.start])
    said = text.low[hour.start : hour.end]
    ends_clause = said in DAY_ENDS and _APART.match(text.low, hour.end)
    if not (until or ends_clause or _LATEST.match(text.low, hour.end)):
        if hour.kind == "hour":
            yield Proposal(field="", start=hour.start, end=hour.end)
        return
    start = until.start() if until else hour.start
    yield _moment_proposal(
        start, hour.end, (local.date(),), hour.clocks, zone, local, roll=hour.kind == "part"
    )


def _moment_proposal(
    start: int, end: int, dates: tuple[date, ...], clocks: tuple[time | None, ...], zone: tzinfo,
    local: datetime,
    *, weak: bool = False, roll: bool = False,
) -> Proposal:  # fmt: skip
    try:
        found: list[Moment] = [moment(day, clock, zone) for day in dates for clock in clocks]
        if roll and len(found) == 1 and found[0].at <= local:
            found = [moment(date.fromordinal(dates[0].toordinal() + 1), clocks[0], zone)]
    except (NoSuchDate, OverflowError) as wrong:
        return Proposal(field=FIELD, start=start, end=end, complaint=str(wrong), weight=4)
    if len(clocks) == 2 and len(dates) == 1:
        later = [one for one in found if one.at > local]
        found = later[:1] if len(later) == 1 else found
    if len(found) > 1:
        choices = tuple(one.at for one in found)
        return Proposal(field=FIELD, start=start, end=end, choices=choices, weight=3, weak=weak)
    return Proposal(
        field=FIELD, start=start, end=end, value=found[0].at, note=found[0].note, weight=3, weak=weak
    )
