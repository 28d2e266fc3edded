"""Errors that end a training early.

Exception
├── TrainError   the reason is for the user: what is wrong and what to do
├── NodeFault    the node cannot train, whatever the job; the reason is for its administrator
├── CheckpointFault  the checkpoint to go on from cannot be used; an earlier one may be
├── PeersMissing the other nodes of the training did not come
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


class NodeFault(Exception):
    """No job could be trained here now; the message says what to repair."""


class CheckpointFault(Exception):
    """The checkpoint to go on from cannot be used; the message says why."""


class PeersMissing(Exception):
    """Processes on other nodes were not there in time; the message says which."""


class Stopped(Exception):
    """The training was asked to stop and did."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Tell whether this error says that memory ran out, on the GPU or on the host.

    An error that caused it counts, too.
    """
    while error is not None:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        if isinstance(error, RuntimeError) and any(mark in str(error) for mark in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


# As CUDA's and NCCL's error strings have them.
_SICK_NODE = (
    ("uncorrectable ECC error", "A GPU of this node has uncorrectable memory errors; reset or replace it."),
    ("uncorrectable NVLink error", "An NVLink of this node is faulty; reset or replace its GPUs."),
    ("hardware stack error", "A GPU of this node is faulty; reset or replace it."),
    ("no CUDA-capable device", "The driver shows the training no GPU; see nvidia-smi on the node."),
    ("driver version is insufficient", "The node's NVIDIA driver is older than its torch build asks for."),
    ("system not yet initialized", "The node's GPUs are not ready; is nvidia-fabricmanager running?"),
    ("busy or unavailable", "A GPU is held by another program; see nvidia-smi on the node."),
    ("no kernel image is available", "The node's torch build has no code for its GPU; install another."),
    ("CUDA error: unknown error", "A GPU of this node does not answer; see nvidia-smi and the kernel's log."),
    ("shm/nccl", "The node's shared memory is too small for NCCL; give its container --shm-size=8g."),
)
HUB_AWAY = (
    "The model hub cannot be reached from this node, or does not answer; see its network, or put the model"
    " on the node beforehand."
)
_DISK_IS_FULL = ("No space left", "Disk quota exceeded", "File too large")  # safetensors has no errno
_LOST_PEER_TYPES = ("DistBackendError", "DistNetworkError", "DistStoreError")
_LOST_PEER_WORDS = ("Connection closed by peer", "Connection reset by peer", "gloo/transport")


def node_fault(error: BaseException | None) -> str:
    """Return the node's fault that this error tells of; else an empty text.

    An error that caused it counts, too.
    """
    while error is not None:
        if isinstance(error, NodeFault):
            return str(error)
        for mark, meaning in _SICK_NODE if isinstance(error, RuntimeError) else ():
            if mark in str(error):
                return f"{meaning} ({_first_line(error)})"
        if is_disk_full(error):
            return f"The node's disk is full; earlier checkpoints are kept. ({_first_line(error)})"
        if _is_hub_away(error):
            return f"{HUB_AWAY} ({_first_line(error)})"
        error = error.__cause__ or error.__context__
    return ""


def is_disk_full(error: BaseException) -> bool:
    """Did a file find no room on this node?"""
    return any(mark in str(error) for mark in _DISK_IS_FULL)


def _is_hub_away(error: BaseException) -> bool:
    """Tell whether the hub is away, by the error's name and status.

    The HTTP library of the hub's client depends on its version.
    """
    status = getattr(getattr(error, "response", None), "status_code", 0)
    names = {kind.__name__ for kind in type(error).__mro__}
    return "TransportError" in names or status == 429 or status >= 500


def has_lost_peers(error: BaseException) -> bool:
    """Is this only how a process notices that another one is gone?"""
    if not isinstance(error, RuntimeError):
        return False
    return type(error).__name__ in _LOST_PEER_TYPES or any(mark in str(error) for mark in _LOST_PEER_WORDS)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
