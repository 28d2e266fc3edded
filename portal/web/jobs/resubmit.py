"""A job as a call of the API, and as the beginning of another job."""

from __future__ import annotations

import json
import shlex
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from portal.accounts.models import User
from portal.clock import database_now
from portal.web.common.param_fields import as_form_values
from portal.web.common.read_fields import as_fields
from portal.web.common.term_fields import as_term_values
from scheduler.models import Job
from scheduler.selectors.analysis.failures import explained
from scheduler.selectors.analysis.readings import own_reading
from scheduler.selectors.job_requests import request_of
from scheduler.services.provenance.read_values import ReadValueChoice
from scheduler.states import DependencyKind


def as_curl(job: Job, *, portal: str) -> str:
    """A command line that submits the same job again."""
    body = shlex.quote(
        json.dumps(request_of(job, database_now()), indent=2, ensure_ascii=False, cls=DjangoJSONEncoder)
    )
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
    values = request_of(job, database_now())
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
