"""The time that the current request has waited for its thread and the database.

Its client waits as well.
"""

from __future__ import annotations

from contextvars import ContextVar

LONGEST_S = 3.0  # for a thread: a request that came too late is not worth starting
waited_s: ContextVar[float] = ContextVar("waited_s", default=0.0)
# Time that its slow statements took; None outside of requests, where no client waits.
slow_s: ContextVar[float | None] = ContextVar("slow_s", default=None)
