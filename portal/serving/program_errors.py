"""Errors as programs read them, in the form of the interface that they asked.

Under /api/ and /agent/ it is `{"error": {"code", "message", "fields"}}`, under /v1 and Azure's prefixes
OpenAI's, `{"error": {"message", "type", "param", "code"}}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

OPENAI_PATHS = re.compile(r"/(?:v1|openai)(?:/|\Z)")
TYPES = {
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
# Our codes for which programs written for OpenAI look by another name.
OPENAI_CODES = {
    "invalid": "invalid_value",
    "bad_file": "invalid_file",
    "parse_error": "invalid_json",
    "not_authenticated": "invalid_api_key",
    "authentication_failed": "invalid_api_key",
    "throttled": "rate_limit_exceeded",
    "over_quota": "insufficient_quota",
}
# The same request would be refused again, so a client need not repeat it by itself.
FINAL = frozenset({"conflict", "illegal_state", "over_quota"})
# Statuses that clients of OpenAI know for what has another one under /api/.
OPENAI_STATUSES = {"illegal_state": 400, "key_reused": 400, "over_quota": 429}


def is_openai(path: str) -> bool:
    return OPENAI_PATHS.match(path) is not None


def openai_error(status: int, code: str, message: str, param: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's form. code: one of ours."""
    kind = "server_error" if status >= 500 else TYPES.get(status, "invalid_request_error")
    named = OPENAI_CODES.get(code, code)
    return {"error": {"message": message, "type": kind, "param": param, "code": named}}


def status_at(path: str, status: int, code: str) -> int:
    """The status that clients at this path know for the code."""
    return OPENAI_STATUSES.get(code, status) if is_openai(path) else status


def headers_at(path: str, code: str) -> Mapping[str, str]:
    """Headers that keep clients of OpenAI from asking again in vain."""
    return {"x-should-retry": "false"} if is_openai(path) and code in FINAL else {}


def program_error(path: str, status: int, code: str, message: str) -> dict[str, Any]:
    """An error without fields, in the form of the interface at this path."""
    if is_openai(path):
        return openai_error(status, code, message)
    return {"error": {"code": code, "message": message, "fields": {}}}
