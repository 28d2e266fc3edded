"""A module run with a clock that is off.

python -m tests.chaos.skewed SECONDS MODULE [ARGUMENT ...]

It takes the place of a system clock that is wrong. Monotonic time goes on as it is, as it would
there.
"""

from __future__ import annotations

import runpy
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial


def set_clock(seconds: float) -> None:
    """Move what this process takes for the present."""
    true = time.time
    # Not functions, which as a class's attribute would become methods, unlike those that they replace.
    time.time = partial(lambda: true() + seconds)
    time.time_ns = partial(lambda: round((true() + seconds) * 1e9))
    with suppress(ImportError):  # a node has no Django
        from django.utils import timezone

        timezone.now = lambda: datetime.fromtimestamp(time.time(), UTC)


if __name__ == "__main__":
    set_clock(float(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
