"""Parts of pages that the browser asks for again and again."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from django.http import HttpResponse, HttpResponseNotModified
from django.shortcuts import render

from portal.accounts.requests import PageRequest

# Both differ each time without anything having happened; the browser keeps relative times up itself.
_PASSING = re.compile(rb"(<time [^>]*>)[^<]*|(name=\"csrfmiddlewaretoken\") value=\"[^\"]*\"")


def fragment(request: PageRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Return the rendered part, or 304 if the client already has it.

    The client's version is in If-None-Match.
    """
    response = render(request, template, context)
    meaning = _PASSING.sub(rb"\1\2", response.content)
    etag = f'"{hashlib.sha256(meaning).hexdigest()[:32]}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponseNotModified(headers={"ETag": etag})
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    response["Vary"] = "HX-Request"
    return response


def is_fragment(request: PageRequest) -> bool:
    """Does htmx ask for the part that changes, rather than a person for the page?"""
    return request.headers.get("HX-Request") == "true"
