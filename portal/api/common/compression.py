"""Compressed answers to programs."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse
from django.middleware.gzip import GZipMiddleware

from portal.api.common.throttles import token_of

REFUSED = re.compile(r"\bgzip\s*;\s*q\s*=\s*0(?:\.0*)?\s*(?:,|$)", re.IGNORECASE)
LEAST_BYTES = 1024  # smaller ones fit into a packet or two anyway


class CompressionMiddleware(GZipMiddleware):
    """gzip for answers to tokens.

    A browser's session is left out: compression beside its secrets would tell them (BREACH). Files are sent
    as they are, for ranges count their bytes.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:  # type: ignore[override]
        if response.streaming or token_of(request) is None or len(response.content) < LEAST_BYTES:
            return response
        if REFUSED.search(request.headers.get("Accept-Encoding", "")):  # Django looks for the word alone
            return response
        return super().process_response(request, response)  # type: ignore[return-value]
