"""A request for a job as JSON, kept until a worker looks at it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.accounts.selectors import own_teams
from scheduler.errors import BadParameters, NotFound
from scheduler.selectors.files import get_file
from scheduler.selectors.jobs import visible_arrays, visible_jobs
from scheduler.services.jobs.dependencies import After
from scheduler.services.jobs.verbs import JobRequest
from scheduler.states import DependencyKind

FILES = ("training_file", "validation_file")
TIMES = ("deadline_at", "begin_at")


def request_json(request: JobRequest) -> dict[str, Any]:
    """Return the request with ids in place of rows.

    Its name, and where its values were read, are left out: they change no start.
    """
    given: dict[str, Any] = {name: value for name, value in request.items() if name not in ("name", "read")}
    content = given | {name: given[name].pk for name in (*FILES, "team") if given.get(name)}
    content |= {name: given[name].isoformat() for name in TIMES if given.get(name)}
    return content | {"after": [[one.on.pk, one.kind] for one in given.get("after", ())]}


def read_request(owner: User, content: dict[str, Any]) -> JobRequest:
    """Return the request as its owner may still make it.

    Raises BadParameters naming what is gone.
    """
    found = content | {name: datetime.fromisoformat(content[name]) for name in TIMES if content.get(name)}
    for name in FILES:
        if content.get(name):
            try:
                found[name] = get_file(owner, content[name])
            except NotFound as gone:
                raise BadParameters({name: "has been deleted; choose another one"}) from gone
    if content.get("team"):
        found["team"] = own_teams(owner).filter(pk=content["team"]).first()
        if found["team"] is None:
            raise BadParameters({"team": "is none of your teams any more; choose another one"})
    ids = [name for name, _ in content["after"]]
    on = visible_jobs(owner).in_bulk(ids) | visible_arrays(owner, ids)
    found["after"] = [After(on[name], DependencyKind(kind)) for name, kind in content["after"] if name in on]
    made: JobRequest = found  # type: ignore[assignment]  # what `request_json` took apart
    return made
