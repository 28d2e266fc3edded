"""Changes that would let a waiting job start sooner, beside its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.param_fields import as_form_values
from portal.web.common.partials import fragment
from portal.web.jobs.job import own_job
from scheduler.core.placement.levels import TopologyLevel
from scheduler.selectors.cluster.job_changes import changes_of
from scheduler.services.forecasts.changes import ask_changes
from scheduler.states import JobState, PriorityClass

# The fields of the form that have other values than REST.
WRITTEN: dict[str, Callable[[Any], Any]] = {
    "priority": lambda word: PriorityClass.of_word(word).value,
    "max_run_s": lambda seconds: seconds / 3600,
    "preemptible": lambda may: "" if may else "0",
    "topology_level": lambda word: TopologyLevel.of_word(word).value,
}


@login_required
@require_GET
def job_changes(request: PageRequest, job_id: str) -> HttpResponse:
    """The changes that help, as far as they are known; the first look has them found."""
    job, now = own_job(request, job_id), database_now()
    if job.state != JobState.QUEUED:
        return HttpResponse('<div id="changes"></div>')
    ask_changes(job=job, now=now)
    changes = changes_of(job, request.user, now)
    rows = [(offer, _fields(offer.change, job.version)) for offer in changes.offers]
    return fragment(request, "jobs/changes/offers.html", {"job": job, "changes": changes, "rows": rows})


def _fields(change: Mapping[str, Any], version: int) -> list[tuple[str, Any]]:
    """The body of the verb `change` as the fields of its form."""
    if not change:
        return []
    values = {**change, **as_form_values(change.get("params", {}))}
    values.pop("params", None)
    for name, written in WRITTEN.items():
        if name in values:
            values[name] = written(values[name])
    return [("version", version), *((name, "" if value is None else value) for name, value in values.items())]
