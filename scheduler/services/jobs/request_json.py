"""A request for a job as JSON, kept for a worker or its owner."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.accounts.selectors import own_teams
from scheduler.core.job_terms import JOB_TERMS, JobRequest, JobTerm, Kind
from scheduler.errors import BadParameters, NotFound
from scheduler.selectors.files import get_file
from scheduler.selectors.jobs import visible_arrays, visible_jobs
from scheduler.services.jobs.dependencies import After
from scheduler.states import DependencyKind


def request_json(request: JobRequest) -> dict[str, Any]:
    """Return the request with ids in place of rows."""
    return {name: _plain(JOB_TERMS[name].kind, value) for name, value in request.items()}


def _plain(kind: Kind, value: Any) -> Any:
    if kind is Kind.EARLIER:
        return [[one.on.pk, one.kind] for one in value]
    if value is None or kind not in (Kind.FILE, Kind.TEAM, Kind.MOMENT):
        return value
    return value.isoformat() if kind is Kind.MOMENT else value.pk


def read_request(owner: User, content: dict[str, Any]) -> dict[str, Any]:
    """Return the request as its owner may still make it.

    Raises BadParameters naming all that is gone.
    """
    request, gone = dict[str, Any](), dict[str, str]()
    for name, value in content.items():
        try:
            request[name] = _row(owner, JOB_TERMS[name], value)
        except _Gone as row:
            gone[name] = str(row)
    if gone:
        raise BadParameters(gone)
    return request


class _Gone(Exception):
    """A row that the owner of a request does not see any more, with the remedy."""


def _row(owner: User, term: JobTerm, value: Any) -> Any:
    if value is None:
        return None
    if term.kind is Kind.MOMENT:
        return datetime.fromisoformat(value)
    if term.kind is Kind.FILE:
        try:
            return get_file(owner, value)
        except NotFound as error:
            raise _Gone("has been deleted; choose another one") from error
    if term.kind is Kind.TEAM:
        if team := own_teams(owner).filter(pk=value).first():
            return team
        raise _Gone("is none of your teams any more; choose another one")
    if term.kind is Kind.EARLIER:
        ids = [name for name, _ in value]
        on = visible_jobs(owner).in_bulk(ids) | visible_arrays(owner, ids)
        if unseen := [name for name in ids if name not in on]:
            raise _Gone(f"names {unseen[0]}, which you do not see any more; leave it out")
        return [After(on[name], DependencyKind(kind)) for name, kind in value]
    return value
