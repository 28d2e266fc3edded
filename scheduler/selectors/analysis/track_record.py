"""Promises compared with measurements, of the runs that a person may see.

The database aggregates them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from django.db.models import Avg, Count, F, FloatField, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Ln

from knowledge.core.data.measurement import OWN
from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Interval, Source
from knowledge.models import Execution, Status
from portal.accounts.models import User
from scheduler.selectors.analysis.period import Period, first_of
from scheduler.selectors.executions import visible_executions
from scheduler.selectors.figures.promise import is_inside

LATEST = 1000
# The promised figure and the column that holds what became of it, by the name of the figure.
TARGETS = {
    "duration_s": "runtime_s",
    "tokens_per_second": "tokens_per_second",
    "peak_memory_bytes": "peak_memory_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How the promises of one source turned out.

    log_ratio: mean of ln(measured / promised).
    """

    target: str
    source: Source
    runs: int
    judged: int  # runs whose promise had an interval
    inside: int
    log_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One promised figure with its interval (80 %), and the measured one, all above 0."""

    at: datetime
    promised: float
    low: float | None
    high: float | None
    measured: float


def promised_runs(user: User) -> QuerySet[Execution]:
    """Own runs with a promise that the user may see; stated defaults promise nothing."""
    runs = visible_executions(user).filter(source=OWN, status=Status.OK, predicted__isnull=False)
    return runs.exclude(predicted__source=Source.DEFAULT.value)


def first_promise(user: User) -> datetime | None:
    """When the oldest of them ended."""
    return first_of(promised_runs(user), "created_at")


def verdicts(user: User, period: Period) -> list[Verdict]:
    """Judge promises by figure and by their source; one query for each figure."""
    runs = promised_runs(user).filter(period.holds("created_at"))
    return [verdict for target in TARGETS for verdict in _verdicts(runs, target)]


def _verdict(target: str, source: str, pairs: Sequence[Pair]) -> Verdict:
    inside = [is_inside(one.measured, one.low, one.high) for one in pairs]
    return Verdict(
        target=target,
        source=Source(source),
        runs=len(pairs),
        judged=sum(kept is not None for kept in inside),
        inside=sum(kept is True for kept in inside),
        log_ratio=fmean(math.log(one.measured / one.promised) for one in pairs),
    )


def _verdicts(runs: QuerySet[Execution], target: str) -> Iterator[Verdict]:
    promised, low, high = (_promise(target, part) for part in ("value", "low", "high"))
    measured = Cast(F(TARGETS[target]), FloatField())
    known = runs.alias(p=promised, low=low, high=high, m=measured).filter(p__gt=0, m__gt=0)
    rows = (
        known.annotate(by=KeyTextTransform("source", "predicted"))
        .order_by()
        .values_list("by")
        .annotate(
            runs=Count("pk"),
            judged=Count("pk", filter=Q(low__isnull=False, high__isnull=False)),
            inside=Count("pk", filter=Q(low__lte=F("m"), high__gte=F("m"))),
            log_ratio=Avg(Ln(F("m") / F("p"))),
        )
    )
    for by, count, judged, inside, log_ratio in sorted(rows):
        yield Verdict(
            target=target, source=Source(by), runs=count, judged=judged, inside=inside, log_ratio=log_ratio
        )


def latest_pairs(user: User, period: Period) -> tuple[dict[str, list[Pair]], list[Verdict]]:
    """The latest runs of the period, at most LATEST: pairs and verdicts; one query.

    By figure, the promises for their placement, oldest first; and verdicts on the promises at submission
    of those that were placed elsewhere.
    """
    parts = ("value", "low", "high")
    columns = {f"{target}_{part}": _promise(target, part) for target in TARGETS for part in parts}
    rows = (
        promised_runs(user)
        .filter(period.holds("created_at"))
        .annotate(**columns)
        .order_by("-created_at", "-pk")
        .values_list("created_at", "promised_elsewhere", *TARGETS.values(), *columns)[:LATEST]
    )
    placed: dict[str, list[Pair]] = {target: [] for target in TARGETS}
    elsewhere: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for at, stored, *values in reversed(rows):
        first = read_option(stored) if stored else None
        for number, (target, measured) in enumerate(zip(TARGETS, values, strict=False)):
            bounds = values[len(TARGETS) + 3 * number :][:3]
            if measured and bounds[0]:
                placed[target].append(_pair(at, Interval(*bounds), measured))
            if measured and first and (figure := getattr(first, target)).value:
                elsewhere[target, first.source.value].append(_pair(at, figure, measured))
    in_order = sorted(elsewhere, key=lambda key: (list(TARGETS).index(key[0]), key[1]))
    return placed, [_verdict(*key, elsewhere[key]) for key in in_order]


def _pair(at: datetime, promise: Interval, measured: float) -> Pair:
    return Pair(at=at, promised=promise.value, low=promise.low, high=promise.high, measured=float(measured))


def _promise(target: str, part: str) -> Combinable:
    return Cast(KeyTextTransform(part, KeyTransform(target, "predicted")), FloatField())
