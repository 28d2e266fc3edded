"""Tags of answers: what `ETag`, `If-None-Match` and `If-Match` compare.

A tag has two halves. The first one changes with what people change, the second one with anything that the
answer tells. A reader is told again what has any other tag; a change begins from an answer whose first half
still holds, for a loss, a load or a price that moved by itself is no reason to refuse it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

MATCH, NONE_MATCH = "If-Match", "If-None-Match"
DIGITS = 16


class Outdated(APIException):
    status_code = 412
    default_code = "changed_meanwhile"
    default_detail = "It is not as it was in the answer that If-Match names; read it again."


def tag_of_answer(told: Mapping[str, Any], moving: Collection[str]) -> str:
    """The tag of one object as it is told; moving: fields that change by themselves."""
    settled = {name: value for name, value in told.items() if name not in moving}
    return tag(_digest(settled), _digest(told))


def tag(settled: str, all_told: str) -> str:
    return f'"{settled}-{all_told}"'


def is_known(request: Request, tag: str) -> bool:
    """Has the reader seen the answer of this tag?"""
    return any(one in (tag, "*") for one in _named(request, NONE_MATCH))


def refuse_outdated(request: Request, tag: str | None) -> None:
    """Raises Outdated where `If-Match` names neither this tag nor its first half.

    tag: None where there is none, which nothing matches.
    """
    if MATCH not in request.headers:
        return
    named = _named(request, MATCH)
    if "*" not in named and (tag is None or _settled(tag) not in map(_settled, named)):
        raise Outdated


def with_tag(request: Request, response: Response, moving: Collection[str]) -> Response:
    """An answer with the tag of the one object that it tells, or 304 to who knows it.

    Others stay as they are.
    """
    if "ETag" in response.headers or not is_one_object(response):
        return response
    tag = tag_of_answer(response.data, moving)
    if request.method in ("GET", "HEAD") and is_known(request, tag):
        return Response(status=304, headers={"ETag": tag})
    response["ETag"] = tag
    return response


def is_one_object(response: object) -> bool:
    """Does it tell one object? Lists have rows in `data`."""
    told = getattr(response, "data", None)
    answered = isinstance(response, Response) and response.status_code == 200
    return answered and isinstance(told, Mapping) and not isinstance(told.get("data"), list)


def _named(request: Request, header: str) -> list[str]:
    """The tags of a header; a proxy that compresses makes them weak ones."""
    return [one.strip().removeprefix("W/") for one in request.headers.get(header, "").split(",")]


def _settled(tag: str) -> str:
    return tag.strip('"').partition("-")[0]


def _digest(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, cls=JSONEncoder).encode()).hexdigest()[:DIGITS]
