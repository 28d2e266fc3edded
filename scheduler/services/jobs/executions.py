"""The Execution of an ended attempt, in the transaction that ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from statistics import median

from knowledge.services import record_execution
from scheduler import hints
from scheduler.core.measured import Measured
from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import Attempt, Gpu, Job
from scheduler.selectors.figures.promise import promised_elsewhere
from scheduler.states import Outcome


def record(*, attempt: Attempt, job: Job, now: datetime) -> None:
    """Record the attempt if its process was started.

    Attempts that never ran teach nothing.
    """
    if not attempt.claims.filter(started=True).exists():
        return
    option = attempt.promised
    rate = _settled_rate(attempt)
    status, learn, flag = _status(Outcome(attempt.outcome), rate)
    finished = attempt.outcome == Outcome.SUCCEEDED and attempt.resume_step == 0
    record_execution(
        attempt_id=attempt.pk,
        config=option.config,
        status=status,
        tokens_per_second=rate,
        runtime_s=_duration_s(attempt) if finished else None,
        startup_s=_startup_s(attempt) if finished else attempt.figures.startup_s,
        peak_memory_bytes=attempt.peak_memory_bytes,
        memory_capacity_bytes=_capacity(attempt),
        learn=learn,
        flag_reason=flag,
        promise=option,
        elsewhere=promised_elsewhere(job.promised, option),
        predictor_version=job.predictor_version,
        software=_software(attempt.figures),
        link_level=TopologyLevel(attempt.link_level).word if attempt.link_level else None,
        now=now,
    )
    hints.learn()


def _status(outcome: Outcome, rate: float | None) -> tuple[str, bool, str]:
    """Execution status, whether to learn from it, and the reason if not."""
    if outcome is Outcome.OOM:
        return "oom", True, ""
    if outcome is Outcome.ERROR:
        return "failed", False, "ended with an error of data or code"
    if rate is None:
        return ("ok" if outcome is Outcome.STOPPED else "failed"), False, "ended before a step was measured"
    return "ok", True, ""


def _settled_rate(attempt: Attempt) -> float | None:
    """Return the trainer's own figure, else the median of its step reports.

    The latter then is the attempt's too.
    """
    if rate := attempt.figures.tokens_per_s:
        return rate
    rates = [
        rate
        for rate in attempt.metrics.values_list("tokens_per_second", flat=True).order_by("-step")[:200]
        if rate
    ]
    if not rates:
        return None
    attempt.measured = replace(attempt.figures, tokens_per_s=float(median(rates))).as_json()
    attempt.save(update_fields=["measured"])
    return attempt.figures.tokens_per_s


def _duration_s(attempt: Attempt) -> float | None:
    """The attempt's duration; None where the clock was set back meanwhile."""
    lasted = attempt.lasted_s(attempt.created_at)
    return lasted if lasted > 0 else None


def _startup_s(attempt: Attempt) -> float | None:
    """Return the seconds that were neither training, evaluating nor saving.

    The portal's share is included: promised and actual duration run from the attempt's start to
    its end, so that the parts add up.
    """
    figures, lasted = attempt.figures, _duration_s(attempt)
    if figures.train_s is None or lasted is None:
        return figures.startup_s
    return max(0.0, lasted - figures.train_s - (figures.evaluation_s or 0.0) - (figures.saving_s or 0.0))


def _capacity(attempt: Attempt) -> int | None:
    held = Gpu.objects.filter(allocations__claim__attempt=attempt)
    return min((gpu.memory_bytes for gpu in held), default=None)


def _software(figures: Measured) -> str | None:
    versions = figures.software or {}
    return " ".join(f"{name} {version}" for name, version in sorted(versions.items())) or None
