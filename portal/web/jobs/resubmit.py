"""A job as a call of the API, and as the beginning of another job."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from portal.accounts.models import User
from portal.clock import database_now
from portal.web.common.param_fields import as_form_values
from portal.web.common.read_fields import as_fields
from portal.web.common.term_fields import as_term_values
from scheduler.core.job_terms import JOB_TERMS, JobTerm, Kind, wants_spot
from scheduler.models import Job, JobDependency
from scheduler.selectors.analysis.failures import explained
from scheduler.selectors.analysis.readings import own_reading
from scheduler.selectors.dependencies import to_come_after
from scheduler.services.provenance.read_values import ReadValueChoice
from scheduler.states import DependencyKind


def request_of(job: Job) -> dict[str, Any]:
    """Return the owner's request as POST /api/jobs/ takes it.

    Recommended values are recommended again. What is left out of a request, or has passed, stays out.
    """
    values = {name: _own(job, term) for name, term in JOB_TERMS.items()}
    if job.spot == wants_spot({**values, "spot": None}):
        values["spot"] = None
    return {name: value for name, value in values.items() if value not in (None, "", [], {}, _usual(name))}


def _own(job: Job, term: JobTerm) -> Any:
    """The job's own value as a request has it."""
    if term.kind is Kind.EARLIER:
        return [_after(one) for one in to_come_after(job)]
    value = term.of(job)
    return _if_to_come(value) if term.kind is Kind.MOMENT else term.word(value)


def _usual(name: str) -> Any:
    """The word of a term that is left out."""
    return JOB_TERMS[name].word(JOB_TERMS[name].default)


def _if_to_come(moment: datetime | None) -> datetime | None:
    """A deadline or a beginning, unless it has passed: that means nothing any more."""
    return moment if moment and moment > database_now() else None


def _after(dependency: JobDependency) -> dict[str, str]:
    if dependency.on_array_id:
        return {"array": dependency.on_array_id, "kind": dependency.kind}
    return {"job": dependency.on_id or "", "kind": dependency.kind}


def as_curl(job: Job, *, portal: str) -> str:
    """A command line that submits the same job again."""
    body = shlex.quote(json.dumps(request_of(job), indent=2, ensure_ascii=False, cls=DjangoJSONEncoder))
    return (
        f"curl {shlex.quote(portal + '/api/jobs/')} \\\n"
        '  -H "Authorization: Bearer $FORETUNE_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {body}"
    )


def _kind_of_all(after: list[dict[str, str]]) -> str:
    """The form has one for all: empty where one of them must succeed."""
    kinds = {one["kind"] for one in after}
    return DependencyKind.ENDED.value if kinds == {DependencyKind.ENDED.value} else ""


def as_form(job: Job) -> dict[str, Any]:
    """The job's own values as the first values of the form of a new one."""
    values = request_of(job)
    after = values.pop("after", [])
    order = {
        "after": [one.get("job") or one["array"] for one in after],
        "after_kind": _kind_of_all(after),
    }
    params = as_form_values(values.pop("params", {}))
    return {**as_term_values(values), **order, **params, "team": job.team_id}


def mended(job: Job) -> tuple[dict[str, Any], dict[str, str]]:
    """Return first values that remove the cause of a job's failure, and why, by field."""
    found = explained(job)
    if found is None:
        return {}, {}
    if found.cause.name == "bad-data":
        return {"training_file": ""}, {
            "training_file": f"{found.sentence} Choose or upload a corrected file."
        }
    values = as_form_values(dict(found.changes))
    return values, dict.fromkeys(values, f"Changed: {found.sentence}")


def read_origins(job: Job, user: User) -> dict[str, str]:
    """Where a job's own values were read, by the fields of the form that it begins."""
    reading = own_reading(user, job)
    rows = reading.fields if reading else {}
    kept = {name: one for name, one in rows.items() if one["fate"] == ReadValueChoice.KEPT}
    return as_fields({name: f"From your {one['source']}: {one['because']}." for name, one in kept.items()})
