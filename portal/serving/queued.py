"""How long the request in hand has waited for its thread: what came too late is not worth starting."""

from __future__ import annotations

from contextvars import ContextVar

LONGEST_S = 3.0
waited_s: ContextVar[float] = ContextVar("waited_s", default=0.0)
