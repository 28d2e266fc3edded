"""A job as a call of the API, and as the beginning of another job."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from portal.accounts.models import User
from portal.clock import database_now
from portal.web.common.closeness_fields import asked_of
from portal.web.common.param_fields import as_form_values
from portal.web.common.read_fields import as_fields
from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import Job, JobDependency
from scheduler.selectors.analysis.failures import explained
from scheduler.selectors.analysis.readings import own_reading
from scheduler.selectors.dependencies import to_come_after
from scheduler.services.provenance.read_values import Fate
from scheduler.states import DependencyKind


def request_of(job: Job) -> dict[str, Any]:
    """Return the owner's request as POST /api/jobs/ takes it.

    Recommended values are recommended again.
    """
    values = {
        "model": job.model,
        "training_file": job.training_file_id,
        "validation_file": job.validation_file_id,
        "goal": job.goal,
        "name": job.name,
        "team": job.team and job.team.name,
        "deadline_at": _if_to_come(job.deadline_at),
        "begin_at": _if_to_come(job.begin_at),
        "after": [_after(one) for one in to_come_after(job)],
        "budget": job.budget,
        "retries": job.retries,
        "priority": job.priority_class if job.priority else None,
        "max_run_s": job.max_run_s,
        "topology": asked_of(job),
        "topology_level": TopologyLevel(job.topology_level).word if job.topology_level else None,
        "params": job.fixed,
    }
    values = {name: value for name, value in values.items() if value}
    if job.spot != bool(values.get("deadline_at")):  # else it is what an empty choice means
        values["spot"] = "yes" if job.spot else "no"
    return values if job.preemptible else {**values, "preemptible": False}


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
    stopping = {"priority": str(job.priority or ""), "preemptible": "" if job.preemptible else "0"}
    stopping["topology_level"] = str(job.topology_level or "")
    return {**values, **order, **stopping, **as_form_values(values.pop("params", {})), "team": job.team_id}


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
    kept = {name: one for name, one in rows.items() if one["fate"] == Fate.KEPT}
    return as_fields({name: f"From your {one['source']}: {one['because']}." for name, one in kept.items()})
