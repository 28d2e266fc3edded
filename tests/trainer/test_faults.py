"""The blame for an error.

It is the job's, the node's, or that of another process that is gone.
"""

from __future__ import annotations

import httpx
import pytest

from trainer.protocol import Outcome
from trainer.train.errors import NodeFault, has_lost_peers, is_out_of_memory, node_fault
from trainer.train.events import RunFigures
from trainer.train.process import explain

NCCL_SHM = (
    "NCCL error in: x.cpp:94, unhandled system error, NCCL version 2.27.3\nncclSystemError: System "
    "call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nError while "
    "creating shared memory segment /dev/shm/nccl-8kz1pW (size 33030528), error: No space left on device (28)"
)
NCCL_GONE = (
    "NCCL error in: x.cpp:94, remote process exited or there was a network error, NCCL version "
    "2.27.3\nncclRemoteError: A call failed possibly due to a network error."
)
NCCL_MEMORY = (
    "NCCL error in: x.cpp:94, unhandled cuda error, NCCL version 2.27.3\nncclUnhandledCudaError: Call to "
    "CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'"
)
GLOO_GONE = (
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:18304"
)
CUDA = "CUDA error: {}\nCUDA kernel errors might be asynchronously reported at some other API call."


class DistBackendError(RuntimeError):
    """As torch.distributed names what NCCL reports."""


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(CUDA.format("uncorrectable ECC error encountered")),
        RuntimeError("CUDA driver initialization failed: system not yet initialized"),
        RuntimeError(CUDA.format("no kernel image is available for execution on the device")),
        RuntimeError(CUDA.format("CUDA-capable device(s) is/are busy or unavailable")),
        DistBackendError(NCCL_SHM),
        NodeFault("torch finds no usable CUDA GPU on this node"),
    ],
)
def test_a_sick_node_declines_before_the_start_and_loses_the_attempt_after_it(error: Exception):
    assert explain(error, RunFigures())[0] is Outcome.DECLINED
    outcome, reason = explain(error, RunFigures(startup_s=20.0))
    assert outcome is Outcome.LOST
    assert "disk" not in reason
    assert "node" in reason


@pytest.mark.parametrize("error", [DistBackendError(NCCL_GONE), RuntimeError(GLOO_GONE)])
def test_a_process_whose_peers_are_gone_does_not_spend_the_users_retries(error: Exception):
    assert has_lost_peers(error)
    assert explain(error, RunFigures())[0] is Outcome.LOST


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        OSError(122, "Disk quota exceeded"),
        Exception("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_the_nodes_fault_and_not_the_jobs(error: Exception):
    assert explain(error, RunFigures())[0] is Outcome.DECLINED
    outcome, reason = explain(error, RunFigures(startup_s=20.0))
    assert outcome is Outcome.LOST
    assert "disk is full" in reason


def hub_said(status: int) -> Exception:
    request = httpx.Request("GET", "https://hub.example.org/config.json")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, request=request))


def as_transformers_tells(cause: Exception) -> Exception:
    wrong = OSError("We couldn't connect to the hub to load the files")
    wrong.__context__ = cause
    return wrong


@pytest.mark.parametrize("cause", [httpx.ConnectError("refused"), hub_said(503), hub_said(429)])
def test_a_hub_that_does_not_answer_is_no_fault_of_the_job(cause: Exception):
    assert "model hub" in node_fault(as_transformers_tells(cause))


@pytest.mark.parametrize("cause", [hub_said(401), hub_said(404), ValueError("no such model")])
def test_a_hub_that_has_no_such_model_is_the_jobs_to_mend(cause: Exception):
    assert node_fault(as_transformers_tells(cause)) == ""


def test_memory_is_memory_even_where_nccl_asked_for_it():
    assert is_out_of_memory(DistBackendError(NCCL_MEMORY))
    assert explain(DistBackendError(NCCL_MEMORY), RunFigures())[0] is Outcome.OOM


@pytest.mark.parametrize(
    "error", [ValueError("uncorrectable ECC error"), RuntimeError("shape mismatch"), KeyError("x")]
)
def test_other_errors_stay_the_jobs(error: Exception):
    assert node_fault(error) == ""
    assert explain(error, RunFigures())[0] is Outcome.ERROR
