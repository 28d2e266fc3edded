"""Arrays: jobs over a list of values, submitted and cancelled together."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from portal.accounts.models import User
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EventType
from scheduler.core.job_terms import JobRequest, wants_spot
from scheduler.errors import BadParameters
from scheduler.models import Job, JobArray
from scheduler.services.idempotency import Creation, unkeyed
from scheduler.services.jobs import recommend
from scheduler.services.jobs.cancellations import Cancelled, cancel_jobs
from scheduler.services.jobs.verbs import prepare, store
from scheduler.services.provenance.keeping import count_fates
from scheduler.services.provenance.read_values import ReadValues
from scheduler.states import TERMINAL

log = logging.getLogger(__name__)
FEWEST, MOST = 2, 1000
NAME = 190  # characters that leave room for the number


def submit_array(
    *,
    owner: User,
    values: Sequence[Mapping[str, Any]],
    now: datetime,
    limit: int | None = None,
    creation: Creation = unkeyed,
    read: Sequence[ReadValues] = (),
    token: str = "",
    **same: Any,
) -> JobArray:
    """Store a job for each of the values, all or none.

    values: parameters of each job, over those that all have in common. limit: how many run at a
    time. token: the name of the API token that asks. Raises BadParameters naming the value.
    """
    _check(values, limit)
    recommender, prepared = recommend.recommender_of_array(spot=wants_spot(same)), []
    array = JobArray(owner=owner, limit=limit, submitted_at=now)
    for number, value in enumerate(values):
        try:
            one = prepare(
                recommender, owner=owner, now=now, read=read, token=token, **_with_value(same, number, value)
            )
        except BadParameters as wrong:
            raise type(wrong)(_of_value(number, wrong)) from wrong
        one.job.array = array
        one.job.submitted_at = now + timedelta(microseconds=number)  # so they are ordered as they were listed
        prepared.append(one)
    _check_different([one.job.fixed for one in prepared])
    ids = sorted(one.job.pk for one in prepared)  # of one moment they come in any order
    for one, pk in zip(prepared, ids, strict=True):
        one.job.pk = pk
    with creation() as note:
        array.save(force_insert=True)
        store(prepared)
        note(array)
    count_fates(prepared[0].job, prepared[0].read)
    log.info("array submitted", extra={"array": array.pk, "jobs": len(prepared)})
    return array


def cancel_array(*, array: JobArray, actor: User, now: datetime, reason: str = "") -> Cancelled:
    """Cancel all jobs of the array that have not ended."""
    reason = f"The array {array.pk} was cancelled{f': {reason}' if reason else '.'}"
    return cancel_jobs(jobs=Job.objects.filter(array=array), actor=actor, now=now, reason=reason)


def note_ended_arrays(*, now: datetime) -> None:
    """Note the end of arrays of which no job is left to end."""
    going_on = Job.objects.filter(array=OuterRef("pk")).exclude(state__in=TERMINAL)
    ended = list(JobArray.objects.filter(~Exists(going_on), ended_at=None).values_list("pk", flat=True))
    for array in ended:
        states = Counter(Job.objects.filter(array=array).values_list("state", flat=True))
        data = {state.value: states[state] for state in sorted(TERMINAL)}
        with transaction.atomic():
            if JobArray.objects.filter(pk=array, ended_at=None).update(ended_at=now):
                record([Event(subject=array, type=EventType.ARRAY_ENDED, data=data, at=now)])


def _check(values: Sequence[Mapping[str, Any]], limit: int | None) -> None:
    errors = {}
    if not FEWEST <= len(values) <= MOST:
        errors["values"] = f"must list {FEWEST} to {MOST} values"
    elif not all(values):
        errors["values"] = "must each set a parameter at least"
    elif len({json.dumps(value, sort_keys=True, default=str) for value in values}) < len(values):
        errors["values"] = "must differ from each other"
    if limit is not None and limit < 1:
        errors["limit"] = "must be 1 at least"
    if errors:
        raise BadParameters(errors)


def _check_different(fixed: Sequence[Mapping[str, Any]]) -> None:
    """Raise BadParameters for values that mean the same.

    These may be e.g. two names of one GPU model.
    """
    seen: dict[str, int] = {}
    for number, values in enumerate(fixed):
        first = seen.setdefault(json.dumps(values, sort_keys=True), number)
        if first != number:
            raise BadParameters(
                {"values": f"must differ from each other; numbers {first + 1} and {number + 1} mean the same"}
            )


def _with_value(same: JobRequest, number: int, value: Mapping[str, Any]) -> dict[str, Any]:
    found = {**same, "params": {**same.get("params", {}), **value}}
    if name := same.get("name"):
        found["name"] = f"{name[:NAME]} {number + 1}"
    return found


def _of_value(number: int, wrong: BadParameters) -> dict[str, str]:
    return {
        f"values.{number}.{field.removeprefix('params.')}" if field.startswith("params.") else field: message
        for field, message in wrong.fields.items()
    }
