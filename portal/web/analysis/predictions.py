"""Predicted against actual, and the predictor versions with promote and roll back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from knowledge.models import PredictorVersion
from knowledge.predictors.model_registry import promote_version, roll_back
from knowledge.selectors import (
    active_predictor,
    predictor_versions,
    promotions,
    rollback_target,
    track_record,
)
from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.drift import FEW, nightly
from portal.web.charts.track_record import error_over_time, scatter
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.period import RANGES, chosen, present, remembered
from portal.web.common.refusals import refusals_shown
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.analysis.start_record import StartVerdict, start_verdicts
from scheduler.selectors.analysis.track_record import Pair, Verdict, first_promise, latest_pairs, verdicts

VERSIONS, PROMOTIONS = 20, 20
SOURCES = {
    "exact": "earlier runs of the same configuration",
    "model": "past executions",
    "own": "physics, corrected by runs in this portal",
    "prior": "physics alone, with assumed intervals",
}


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """A verdict as the table shows it; `coverage` None: too few runs to say."""

    verdict: Verdict

    @property
    def source(self) -> str:
        return SOURCES[self.verdict.source.value]

    @property
    def coverage(self) -> float | None:
        return self.verdict.inside / self.verdict.judged if self.verdict.judged >= FEW else None

    @property
    def bias(self) -> str:
        """How much more was measured than promised, as a signed share (geometric mean)."""
        if self.verdict.runs < FEW:
            return ""
        return f"{round(math.expm1(self.verdict.log_ratio), 2) + 0.0:+.0%}"


@dataclass(frozen=True, slots=True)
class StartLine:
    """A verdict on starts as the table shows it; None: too few starts to say."""

    verdict: StartVerdict

    @property
    def coverage(self) -> float | None:
        return self.verdict.inside / self.verdict.judged if self.verdict.judged >= FEW else None

    @property
    def error_s(self) -> float | None:
        return self.verdict.error_s if self.verdict.starts >= FEW else None


@dataclass(frozen=True, slots=True)
class Version:
    """A predictor with its errors on the rows that were held out.

    An error is None where none could be measured.
    """

    row: PredictorVersion

    @property
    def speed_error(self) -> float | None:
        return self._metric("throughput_median_ape")

    @property
    def validity_error(self) -> float | None:
        return self._metric("validity_error")

    @property
    def coverage(self) -> float | None:
        return self._metric("coverage_80")

    def _metric(self, name: str) -> float | None:
        value: float | None = self.row.metrics.get(name)
        return value


@login_required
@require_GET
def predictions(request: PageRequest) -> HttpResponse:
    """Show the track record over the chosen period.

    It covers the jobs of the reader and of their teams.
    """
    first = partial(first_promise, request.user)
    when = chosen({"range": "30d", **request.GET.dict()}, now=present(), first=first)
    both = partial(_figures, request.user, when.period)
    judged, elsewhere, pairs, starts = remembered("predictions", request.user, when.period, both)
    days = track_record()
    before = rollback_target() if request.user.is_admin else None  # others are not asked
    context = {
        "chosen": when,
        "ranges": RANGES,
        "few": FEW,
        "lines": [VerdictLine(verdict) for verdict in judged],
        "lines_elsewhere": [VerdictLine(verdict) for verdict in elsewhere],
        "starts": [StartLine(verdict) for verdict in starts],
        "charts": [
            *(scatter(target, found) for target, found in pairs.items()),
            error_over_time(pairs),
            nightly(days),
        ],
        "drift": days[-1].alarm if days else "",
        "versions": [Version(row) for row in predictor_versions()[:VERSIONS]],
        "answering": active_predictor() if before else None,
        "before": before,
        "promotions": promotions()[:PROMOTIONS],
    }
    return render(request, "analytics/predictions.html", context, status=400 if when.errors else 200)


class Judged(NamedTuple):
    """The figures of the page for a period."""

    verdicts: list[Verdict]
    elsewhere: list[Verdict]
    pairs: dict[str, list[Pair]]
    starts: list[StartVerdict]


def _figures(user: User, period: Period) -> Judged:
    pairs, elsewhere = latest_pairs(user, period)
    return Judged(verdicts(user, period), elsewhere, pairs, start_verdicts(user, period))


@login_required
@require_POST
def promote(request: PageRequest, number: int) -> HttpResponse:
    """Make a version the one that answers; for administrators."""
    refuse_others_than_admins(request)
    with refusals_shown(request):
        version = promote_version(number=number, actor=request.user, now=database_now())
        messages.info(request, f"Predictor {version.number} is now active.")
    return redirect("predictions")


@login_required
@require_POST
def rollback(request: PageRequest) -> HttpResponse:
    """Undo the last promotion, if it is the one that was shown; for administrators."""
    refuse_others_than_admins(request)
    seen = request.POST.get("seen", "")
    number = int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 10 else None
    with refusals_shown(request):
        version = roll_back(actor=request.user, now=database_now(), seen=number)
        messages.info(request, f"Predictor {version.number} is active again.")
    return redirect("predictions")
