"""Structured logs: one JSON object per line.

A line has the ids of the things it is about, and no secrets.
"""

from __future__ import annotations

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from uuid import UUID

# Set per request by portal.http.middleware; logs of the same request are found by it.
request_id: ContextVar[str] = ContextVar("request_id", default="")

# Attributes of every record; anything else was given as `extra`: job, attempt, claim, node, ...
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Tokens (ids of jobs are shorter than 32 characters), the hub's too; bearer headers, passwords in addresses.
_BEFORE_SECRETS = r"\bf[a-z]*-(?=[\w-]{32})|\bhf_(?=\w{20})|\bbearer\s+|://[^\s/:@]*:"
_SECRETS = re.compile(rf"(?P<kept>{_BEFORE_SECRETS})[^\s\"'@,;&]{{8,}}", re.IGNORECASE)


def mask(text: str) -> str:
    """Replace tokens, bearer headers and passwords in addresses by `***`."""
    return _SECRETS.sub(lambda match: match["kept"] + "***", text)


class JsonFormatter(logging.Formatter):
    """`{"at", "level", "logger", "message", …}`; exceptions as text under `trace`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(record.getMessage()),
        }
        if current := request_id.get():
            line["request_id"] = current
        for name, value in vars(record).items():
            if name not in STANDARD and isinstance(value, int | float | str | UUID):
                line[name] = value if isinstance(value, int | float) else mask(str(value))
        if record.exc_info:
            line["trace"] = mask(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)
