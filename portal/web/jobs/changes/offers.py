"""Changes that would let a waiting job start sooner, beside its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.param_fields import as_form_values
from portal.web.common.partials import fragment
from portal.web.common.term_fields import as_term_values
from portal.web.jobs.job import own_job
from scheduler.selectors.cluster.job_changes import changes_of
from scheduler.services.forecasts.changes import ask_changes
from scheduler.states import JobState


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
    terms = {name: value for name, value in change.items() if name != "params"}
    values = {**as_term_values(terms), **as_form_values(change.get("params", {}))}
    if "max_run_s" in values:
        values["max_run_s"] /= 3600  # a form has hours
    return [("version", version), *((name, "" if value is None else value) for name, value in values.items())]
