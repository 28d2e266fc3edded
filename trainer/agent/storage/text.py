"""Text and JSON from trainings, made safe.

They are safe for every parser and database that they will pass.
"""

from __future__ import annotations

import json
import math
from typing import Any

from trainer import strict_json

REASON_LIMIT = 2000
# Of one object from a training: a sync with it is still within what the portal reads.
MOST_VALUES, DEEPEST = strict_json.MAX_VALUES // 2, strict_json.MAX_DEPTH // 2


def clean_text(text: str, limit: int = REASON_LIMIT) -> str:
    """At most `limit` characters, with NUL and half characters replaced."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()[:limit]


def parse_object(data: bytes, limit: int) -> dict[str, Any]:
    """The JSON object in `data`; NaN and infinities become null.

    Raises ValueError for anything else, for more than `limit` bytes, and for characters that are no text.
    """
    if len(data) > limit:
        raise ValueError(f"more than {limit} bytes")
    try:
        value = json.loads(data, parse_float=_finite, parse_constant=lambda _: None)
        text = json.dumps(value, ensure_ascii=False)
        strict_json.loads(text, max_values=MOST_VALUES, max_depth=DEEPEST)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("no object")
    if clean_text(text, len(text)) != text or "\\u0000" in text:
        raise ValueError("holds characters that are no text")
    return value


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None
