"""Rendezvous of the training processes of several nodes.

They find each other here before gloo or NCCL connects them. Rank 0 serves a store at
`spec.rendezvous`, and all processes sign in there. A store waits in code that no signal
interrupts, so waiting is done here, in small pieces: a stop is obeyed, and the log says which
processes are missing.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

from trainer.train.distributed import connectivity
from trainer.train.errors import PeersMissing, Stopped
from trainer.train.settings import TrainingSpec

_LOOK_EVERY_S = 0.1
_REPORT_EVERY_S = 30.0
_KNOCK_S = 2.0
_CONNECT_S = 30.0
_ANSWERS_WITHIN_S = 180.0  # rank 0 is started when its address is told, and listens once torch is imported


def meet(order: TrainingSpec, rank: int, size: int, stopped: Callable[[], bool]) -> dist.Store:
    """Return a store shared by the `size` processes, once all of them are there.

    They are those of this attempt. Raises Stopped on request, PeersMissing after
    `hang_after_s`, DistNetworkError where rank 0 cannot serve.
    """
    wait = _Wait(order, stopped)
    # A process that an earlier attempt left behind, and that finds the same port, meets nobody.
    store = dist.PrefixStore(order.spec.attempt, _connected(order, rank, wait))
    store.set(_key(rank), "")
    missing = set(range(size))
    while missing := {other for other in missing if not store.check([_key(other)])}:
        wait.for_what(f"processes {', '.join(map(str, sorted(missing)))} of {size}")
    if rank == 0:
        print(f"{size} processes met at {order.spec.rendezvous}; now they connect to each other", flush=True)
    connectivity.check(order, store, rank, wait.for_what)
    store.set_timeout(timedelta(seconds=order.spec.hang_after_s))
    return store


def _connected(order: TrainingSpec, rank: int, wait: _Wait) -> dist.Store:
    """Rank 0 serves; the others try until it does."""
    name, _, port = order.spec.rendezvous.rpartition(":")
    address = (name.strip("[]"), int(port))
    while rank and (silence := _silence(address)):
        wait.for_what(f"an answer of rank 0 at {order.spec.rendezvous} ({silence})", _ANSWERS_WITHIN_S)
    return dist.TCPStore(
        *address, is_master=rank == 0, timeout=timedelta(seconds=_CONNECT_S), wait_for_workers=False
    )


def _silence(address: tuple[str, int]) -> str:
    """Return why no process answers, or an empty text.

    The store itself would knock for many seconds, deaf to everything else.
    """
    try:
        socket.create_connection(address, _KNOCK_S).close()
    except OSError as error:
        return str(error)
    return ""


def _key(rank: int) -> str:
    return f"here/{rank}"


class _Wait:
    """A wait piece by piece, until a stop or the deadline.

    It says now and then what it waits for.
    """

    def __init__(self, order: TrainingSpec, stopped: Callable[[], bool]) -> None:
        self._stopped, self._limit_s = stopped, order.spec.hang_after_s
        self._began = self._reported_at = time.monotonic()

    def for_what(self, missing: str, at_most_s: float = math.inf) -> None:
        """Wait one piece, which may take no longer than `at_most_s`.

        Raises Stopped, PeersMissing.
        """
        now, limit_s = time.monotonic(), min(self._limit_s, at_most_s)
        if self._stopped():
            raise Stopped
        if now - self._began > limit_s:
            raise PeersMissing(
                f"{socket.gethostname()} waited {limit_s:g} s in vain for {missing}. Do the nodes reach each"
                " other there? See --address and --ports of their agents."
            )
        if now - self._reported_at > _REPORT_EVERY_S:
            self._reported_at = now
            print(f"waiting for {missing}", flush=True)
        time.sleep(_LOOK_EVERY_S)
