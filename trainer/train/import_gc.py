"""The garbage collector rests while libraries are imported.

PyTorch and transformers bring some 2,500 modules. They stay to the end of the process, yet Python would look
through all that is there again and again while it grows: a fifth of the time to import them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def resting() -> Iterator[None]:
    """Pause garbage collection; for imports only.

    Objects that a training leaves behind may hold a GPU's memory and are to be collected.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
