"""Structured log lines on stderr.

They have time, level and message, then key=value for the ids given as `extra`.
"""

from __future__ import annotations

import json
import logging

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class KeyValueFormatter(logging.Formatter):
    """Formatter of lines with the ids as key=value.

    An example is `2026-01-31T12:00:00 info claim taken up claim=c1 job=j1`; control characters
    are escaped.
    """

    def format(self, record: logging.LogRecord) -> str:
        extras = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        pairs = "".join(f" {key}={_value(value)}" for key, value in extras.items())
        time = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        line = f"{time} {record.levelname.lower()} {record.getMessage()}{pairs}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _value(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text and text else json.dumps(text)


def set_up() -> None:
    """Log to stderr. The HTTP library keeps quiet: it would log every heartbeat."""
    handler = logging.StreamHandler()
    handler.setFormatter(KeyValueFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
