"""What holds for every request: an id that logs and answers share."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from portal.logs import request_id

log = logging.getLogger("portal.requests")
_USABLE = re.compile(r"[\w-]{1,64}\Z", re.ASCII)
# Polling pages and agents would drown what changed something or went wrong.
QUIET_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
QUIET_PATHS = frozenset({"/agent/v1/sync"})


def request_id_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Take up the caller's X-Request-ID or make one; log what changed something or failed."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        name = given if _USABLE.match(given) else uuid.uuid4().hex
        mark = request_id.set(name)
        begun = time.monotonic()
        try:
            response = get_response(request)
            response["X-Request-ID"] = name
            quiet = request.method in QUIET_METHODS or request.path in QUIET_PATHS
            if not quiet or response.status_code >= 500:
                spent = round((time.monotonic() - begun) * 1000)
                log.info(
                    "%s %s",
                    request.method,
                    request.path,
                    extra={"status": response.status_code, "duration_ms": spent},
                )
            return response
        finally:
            request_id.reset(mark)

    return middleware
