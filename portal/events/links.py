"""Where the object of an event is shown, on a page and over REST."""

from __future__ import annotations

from typing import NamedTuple

from portal.events.models import Event
from portal.events.types import EventType


class Links(NamedTuple):
    """Addresses within the portal."""

    page: str
    api: str


PLACES = {
    "job": Links("/jobs/{id}/", "/api/jobs/{id}/"),
    "array": Links("/jobs/?q={id}", "/api/arrays/{id}/"),
    "node": Links("/nodes/{id}/", "/api/nodes/{id}/"),
    "predictor": Links("/analytics/predictions/", "/api/predictors/"),
    "market": Links("/markets/{number}/", "/api/markets/mkt-{number}/"),
    "team": Links("/teams/{number}/", "/api/teams/{id}/"),
    "user": Links("/users/{number}/", "/api/users/{id}/"),
    "everybody": Links("/users/limits/", "/api/limits/"),
}


def links(event: Event) -> Links:
    """The addresses of its object.

    They say 404 to those who may not see it, and once it is gone.
    """
    about = EventType(event.type).about
    number = event.subject.rpartition("-")[2]
    place = PLACES[about] if about in PLACES else PLACES[event.subject.partition("-")[0]]
    return Links(*(address.format(id=event.subject, number=number) for address in place))
