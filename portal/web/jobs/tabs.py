"""The tabs of a job's page; each reads only its own rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from knowledge.core.domain.option_json import read_option
from portal.clock import database_now
from portal.web.jobs.log import LogSearch
from portal.web.jobs.resubmit import as_curl
from portal.web.jobs.timeline import stretches
from scheduler.models import Job
from scheduler.selectors.checkpoints import of_job
from scheduler.selectors.job_outcome import compare
from scheduler.selectors.jobs import artifacts, events, log_tail

EVENTS, CHECKPOINTS = 200, 50  # the last ones; the API has all events


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    template: str
    context: Callable[[HttpRequest, Job], dict[str, Any]]


def _overview(_: HttpRequest, job: Job) -> dict[str, Any]:
    attempts = list(job.attempts.all())
    last = attempts[-1] if attempts else None
    promise = last.promised if last else job.promised
    forecast = read_option(last.forecast) if last and last.forecast else None
    return {
        "promise": promise,
        "forecast": forecast,
        "compared": [(line, getattr(forecast, line.name, None)) for line in compare(promise, last)],
        "files": list(artifacts(job)),
        "stretches": stretches(events(job).filter(kind__in=("state", "submitted")), database_now()),
    }


def _log(request: HttpRequest, job: Job) -> dict[str, Any]:
    search = LogSearch(request.GET)
    if search.is_valid() and (wanted := search.cleaned_data["q"]):
        return {"search": search, "wanted": wanted, "found": search.lines_of(job)}
    return {"search": search, "log": log_tail(job)}


def _parameters(_: HttpRequest, job: Job) -> dict[str, Any]:
    return {"chosen": job.chosen, "evidence": job.evidence, "notes": job.notes}


def _attempts(_: HttpRequest, job: Job) -> dict[str, Any]:
    return {"attempts": list(job.attempts.all()), "checkpoints": list(of_job(job)[:CHECKPOINTS])}


def _events(_: HttpRequest, job: Job) -> dict[str, Any]:
    return {"events": reversed(events(job).order_by("-number")[:EVENTS])}


def _repeat(request: HttpRequest, job: Job) -> dict[str, Any]:
    return {"curl": as_curl(job, portal=request.build_absolute_uri("/").rstrip("/"))}


TABS = {
    "overview": Tab("Overview", "jobs/tabs/overview.html", _overview),
    "log": Tab("Log", "jobs/tabs/log.html", _log),
    "parameters": Tab("Parameters", "jobs/tabs/parameters.html", _parameters),
    "attempts": Tab("Attempts", "jobs/tabs/attempts.html", _attempts),
    "events": Tab("Events", "jobs/tabs/events.html", _events),
    "repeat": Tab("API call", "jobs/tabs/repeat.html", _repeat),
}
