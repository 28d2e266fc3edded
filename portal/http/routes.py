"""Routes of addresses, for the web server's threads."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import unquote

from django.urls import Resolver404, resolve

UNKNOWN = "?"


@lru_cache(maxsize=4096)
def route_of(path: str) -> str:
    """The route that serves a path, whatever ids it holds.

    Files and unknown paths have one together.
    """
    try:
        return resolve(unquote(path)).route
    except Resolver404:
        return UNKNOWN
