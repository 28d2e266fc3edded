"""Python's search for garbage in cycles, done seldom.

A simulation builds very much that lives to its end, and a tick much that lives to the tick's.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 1_000_000  # made since the last search; Python's own limit is 700


@contextmanager
def rare_collections(*, lives_on: bool = False) -> Iterator[None]:
    """Search seldom in here: each search walks over all jobs, and finds nothing.

    Objects outside of cycles are freed at once as ever.

    lives_on: much that is built in here lives on without cycles. It counts as old at once, so that the next
    search does not begin with all of it.
    """
    _blocks.enter()
    try:
        yield
    finally:
        if lives_on and not gc.get_freeze_count():  # what others have frozen stays so
            gc.freeze()
            gc.unfreeze()  # among the oldest
        _blocks.leave()


class _Blocks:
    """How many blocks the threads of this process are in.

    The last one out restores what was before the first one.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = threading.Lock(), 0, gc.get_threshold()

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = gc.get_threshold()
                gc.set_threshold(_OBJECTS, *self._before[1:])
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                gc.set_threshold(*self._before)


_blocks = _Blocks()
