"""Earlier jobs like one that is looked at: only those that the reader may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from knowledge.core.evaluate.drift import absolute_error
from knowledge.reading.similar import (
    MOST_SIMILAR,
    NEIGHBOUR,
    PLACE,
    SIMILAR,
    WORK,
    Facts,
    differences,
    duration_by_neighbours,
    similarities,
)
from portal.accounts.models import User
from scheduler.models import Attempt, Job
from scheduler.selectors.figures.times import duration_s
from scheduler.selectors.figures.training import peak_memory_bytes
from scheduler.selectors.jobs import for_lists, visible_jobs
from scheduler.states import TERMINAL, JobState

MOST_PAST, MOST_JUDGED = 2_000, 20
Rows = Sequence[Mapping[str, Any]]
COLUMNS = (
    "pk",
    "model",
    "training_file__filename",
    "training_file__rows",
    "params",
    "binding",
    "promise",
    "state",
    "owner_id",
    "ended_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarJob:
    """An earlier job: how alike it is, what differs, how long it ran, its peak."""

    job: Job
    similarity: float
    differs: tuple[tuple[str, Any, Any], ...]
    duration_s: float | None
    peak_memory_bytes: int | None

    @property
    def as_long(self) -> bool:
        """Whether it had as much to do, on such GPUs.

        Only then does its duration say something of the job's.
        """
        return not {name for name, *_ in self.differs} & {*WORK, *PLACE, "number_gpus"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationByNeighbours:
    """A duration by similar jobs, with both errors on the owner's last jobs.

    Errors are medians of absolute errors (docs/figures.md); None is unknown.
    """

    seconds: float
    error: float | None
    predictors_error: float | None

    @property
    def is_better(self) -> bool:
        """May it stand in place of the prediction?"""
        errors = (self.error, self.predictors_error)
        return None not in errors and errors[0] < errors[1]  # type: ignore[operator]


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeJobs:
    """Similar jobs, most similar first, and what they say of the duration."""

    jobs: Sequence[SimilarJob] = ()
    by_neighbours: DurationByNeighbours | None = None

    @property
    def took_s(self) -> tuple[int, float, float] | None:
        """How many with as much to do succeeded, and how long they took, from two on."""
        ended = [one for one in self.jobs if one.job.state == JobState.SUCCEEDED and one.as_long]
        took = [one.duration_s for one in ended if one.duration_s]
        return (len(took), min(took), max(took)) if len(took) > 1 else None


def facts_of_job(job: Job) -> Facts:
    """The properties of a job by which it is compared."""
    return facts_of(
        model=job.model,
        rows=job.training_file.rows,
        dataset=job.training_file.filename,
        params=job.params,
        option=job.binding or job.promise,
    )


def facts_of(
    *,
    model: str,
    dataset: str | None,
    rows: int | None,
    params: Mapping[str, Any],
    option: Mapping[str, Any] | None = None,
) -> Facts:
    """The same of values that are not a job yet.

    option: as it is stored; it says where the job runs, and for how many steps.
    """
    known = option or {}
    config, work = known.get("config") or {}, {"rows": rows, "steps": known.get("steps")}
    return {**config, **params, **work, "base_model": model, "dataset": dataset}


def similar_jobs(
    user: User, facts: Facts, now: datetime, *, but: str = "", predicted_s: float | None = None
) -> LikeJobs:
    """Up to five earlier jobs that the person sees, most similar first.

    but: a job that is left out. predicted_s: the predictor's duration, for a second one by neighbours.
    """
    past = _past(user, but)
    judged = [row for row in past if row["owner_id"] == user.pk and _promised_s(row)][:MOST_JUDGED]
    queries = [facts, *map(_facts, judged)] if predicted_s else [facts]
    alike, *others = similarities(queries, [_facts(row) for row in past])
    best = sorted(zip(alike, past, strict=True), key=lambda one: -one[0])[:MOST_SIMILAR]
    offered = {row["pk"]: similarity for similarity, row in best if similarity >= SIMILAR}
    rows = for_lists(Job.objects.filter(pk__in=offered)).select_related("training_file")
    jobs = {job.pk: job for job in rows.defer(None)}
    found = [
        _similar(jobs[key], similarity, facts, now) for key, similarity in offered.items() if key in jobs
    ]
    corrected = _by_neighbours(past, alike, predicted_s, judged, others, now) if predicted_s else None
    return LikeJobs(jobs=found, by_neighbours=corrected)


def _by_neighbours(
    past: Rows,
    alike: Sequence[float],
    predicted_s: float,
    judged: Rows,
    others: Sequence[Sequence[float]],
    now: datetime,
) -> DurationByNeighbours | None:
    """The duration by neighbours, and how well it would have predicted past ones."""
    took = _took_s(past, [alike, *others], now)

    def corrected_by(rows: Rows, similarity: Sequence[float], predicted: float) -> float | None:
        known = zip(rows, similarity, strict=True)
        near = [(took[row["pk"]], _promised_s(row), one) for row, one in known if row["pk"] in took]
        return duration_by_neighbours(predicted, near)

    seconds = corrected_by(past, alike, predicted_s)
    if seconds is None:
        return None
    errors, predictors = [], []
    for row, similarity in zip(judged, others, strict=True):
        before = [
            (one, value)
            for one, value in zip(past, similarity, strict=True)
            if one["ended_at"] < row["ended_at"]
        ]
        corrected = corrected_by([one for one, _ in before], [value for _, value in before], _promised_s(row))
        if corrected and (actual := took.get(row["pk"])):
            errors.append(absolute_error(corrected, actual))
            predictors.append(absolute_error(_promised_s(row), actual))
    return DurationByNeighbours(
        seconds=seconds,
        error=median(errors) if errors else None,
        predictors_error=median(predictors) if predictors else None,
    )


def _promised_s(row: Mapping[str, Any]) -> float:
    """The promise to a job that succeeded, in s; 0: nothing to learn."""
    promised = row["promise"] if row["state"] == JobState.SUCCEEDED else None
    return float((promised or {}).get("duration_s", {}).get("value") or 0.0)


def _took_s(past: Rows, alike: Sequence[Sequence[float]], now: datetime) -> dict[str, float]:
    """How long the jobs ran that are near to any of those asked about, or are judged."""
    near = {
        row["pk"]
        for similarity in alike
        for row, one in zip(past, similarity, strict=True)
        if one >= NEIGHBOUR and _promised_s(row)
    }
    attempts: dict[str, list[Attempt]] = {}
    for attempt in Attempt.objects.filter(job__in=near).defer("option", "prediction"):
        attempts.setdefault(attempt.job_id, []).append(attempt)
    took = {key: duration_s(own, now) for key, own in attempts.items()}
    return {key: seconds for key, seconds in took.items() if seconds > 0}


def _past(user: User, but: str = "") -> list[dict[str, Any]]:
    ended = visible_jobs(user).filter(state__in=TERMINAL).exclude(pk=but).order_by("-ended_at")
    return list(ended.values(*COLUMNS)[:MOST_PAST])


def _facts(row: Mapping[str, Any]) -> Facts:
    return facts_of(
        model=row["model"],
        dataset=row["training_file__filename"],
        rows=row["training_file__rows"],
        params=row["params"],
        option=row["binding"] or row["promise"],
    )


def _similar(job: Job, similarity: float, facts: Facts, now: datetime) -> SimilarJob:
    attempts = list(job.attempts.all())
    return SimilarJob(
        job=job,
        similarity=round(similarity, 4),
        differs=tuple(differences(facts, facts_of_job(job))),
        duration_s=duration_s(attempts, now) if attempts else None,
        peak_memory_bytes=peak_memory_bytes(attempts),
    )
