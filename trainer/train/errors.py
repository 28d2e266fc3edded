"""What ends a training early.

Exception
├── TrainError   the reason is for the user: what is wrong and what to do
└── Stopped      a stop was requested; a checkpoint holds all steps done
"""

from __future__ import annotations

import errno

_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "std::bad_alloc",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


class TrainError(Exception):
    """The training cannot go on; the message is shown to the user."""


class Stopped(Exception):
    """The training was asked to stop and did."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Does this error, or one that caused it, say that memory ran out, on the GPU or on the host?"""
    while error is not None:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        if isinstance(error, RuntimeError) and any(mark in str(error) for mark in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False
