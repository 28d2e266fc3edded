"""Where requests come from."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest


def is_from_here(request: HttpRequest) -> bool:
    """Return whether the request was not sent by a page of another origin.

    Browsers say so; a client that is no browser has no session of anyone.
    """
    if site := request.headers.get("Sec-Fetch-Site"):
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin") or request.headers.get("Referer")
    if not origin:
        return True
    parts = urlsplit(origin)
    here = f"{request.scheme}://{request.get_host()}"
    return f"{parts.scheme}://{parts.netloc}" in (here, *settings.CSRF_TRUSTED_ORIGINS)
