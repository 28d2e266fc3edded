"""Keeps stdout for results: what a native library prints goes to stderr."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT, STDERR = 1, 2


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Within, file descriptor 1 is stderr.

    HiGHS 1.12, the solver of scipy 1.17, prints a forgotten debug line now and then, whatever its log options
    say (ERGO-Code/HiGHS issue 2783); it would make a program's JSON unreadable.
    """
    try:
        kept = os.dup(STDOUT)
    except OSError:  # a daemon may have closed it
        yield
        return
    os.dup2(STDERR, STDOUT)
    try:
        yield
    finally:
        os.dup2(kept, STDOUT)
        os.close(kept)
