"""The beginning and the end of an attempt's log, which answer questions.

However long a log is, a bounded number of characters and lines is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet, Sum

from knowledge.reading.failures.troubled_lines import LogLine
from scheduler.models import Attempt, LogPiece

BEGINNING, END = 64_000, 384_000  # characters at least, where the log has them; whole pieces are read
MOST_PIECES = 500  # of each
FIRST_LINES, LAST_LINES = 1_000, 7_000  # with words


@dataclass(frozen=True, slots=True, kw_only=True)
class LogExcerpt:
    """Lines with words, with their numbers in the whole job's log.

    whole: whether no line with words of the attempt's log was left out.
    """

    lines: Sequence[LogLine]
    whole: bool

    @property
    def note(self) -> str:
        """A sentence for the reader of an answer; empty where all was read."""
        return (
            "" if self.whole else f" (Of this long log, {len(self.lines):,} lines at its two ends were read.)"
        )


def newest_piece(attempt: Attempt) -> int:
    """The id of the attempt's newest piece, 0 without a log.

    It changes with every report of a log.
    """
    return _pieces(attempt).order_by("-pk").values_list("pk", flat=True).first() or 0


def excerpt_of(attempt: Attempt) -> LogExcerpt:
    """Return what is read of an attempt's log."""
    pieces = _pieces(attempt)
    end = _until(pieces.order_by("-pk"), END)[::-1]
    if not end:
        return LogExcerpt(lines=(), whole=True)
    before_end = pieces.filter(pk__lt=end[0][0])
    beginning = _until(before_end.order_by("pk"), BEGINNING)
    gap = bool(beginning) and before_end.filter(pk__gt=beginning[-1][0]).exists()
    if gap:
        lines = list(_numbered(attempt, beginning))
        later = list(_numbered(attempt, end, cut=True))
    else:
        lines, later = list(_numbered(attempt, beginning + end)), []
    first, others = lines[:FIRST_LINES], lines[FIRST_LINES:] + later
    last = others[-LAST_LINES:]
    return LogExcerpt(lines=first + last, whole=not gap and len(last) == len(others))


def _pieces(attempt: Attempt) -> QuerySet[LogPiece]:
    return LogPiece.objects.filter(claim__attempt=attempt)


def _until(pieces: QuerySet[LogPiece], characters: int) -> list[tuple[int, str]]:
    """Pieces in their order, until they have as many characters together."""
    read: list[tuple[int, str]] = []
    for pk, text in pieces.values_list("pk", "text")[:MOST_PIECES].iterator(chunk_size=20):
        read.append((pk, text))
        characters -= len(text)
        if characters <= 0:
            break
    return read


def _numbered(attempt: Attempt, pieces: Sequence[tuple[int, str]], *, cut: bool = False) -> Iterator[LogLine]:
    """Lines with words; `cut`: the first one lacks its beginning, and is left out."""
    if not pieces:
        return
    job, fence = attempt.job_id, attempt.fence
    earlier = Q(claim__attempt__fence__lt=fence) | Q(claim__attempt__fence=fence, pk__lt=pieces[0][0])
    before = LogPiece.objects.filter(earlier, claim__attempt__job=job).aggregate(ends=Sum("line_ends"))[
        "ends"
    ]
    lines = "".join(text for _, text in pieces).splitlines(keepends=True)
    for number, text in enumerate(lines[cut:], start=(before or 0) + 1 + cut):
        if not text.isspace():
            yield LogLine(number, text)
