"""How the training processes of several nodes find each other, before gloo or NCCL connects them.

Rank 0 serves a store at `spec.rendezvous`, and everybody signs in there. A store waits in code that no signal
interrupts, so waiting is done here, in small pieces: a stop is obeyed, and the log says who is missing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

from trainer.train.errors import PeersMissing, Stopped
from trainer.train.settings import Order

_LOOK_EVERY_S = 0.1
_TELL_EVERY_S = 30.0
_KNOCK_S = 2.0
_CONNECT_S = 30.0


def meet(order: Order, rank: int, size: int, stopped: Callable[[], bool]) -> dist.Store:
    """A store shared by the `size` processes of this attempt, once all of them are there.

    Raises Stopped on request, PeersMissing after `hang_after_s`, DistNetworkError where rank 0 cannot serve.
    """
    wait = _Wait(order, stopped)
    # A process that an earlier attempt left behind, and that finds the same port, meets nobody.
    store = dist.PrefixStore(order.spec.attempt, _connected(order, rank, wait))
    store.set(_key(rank), "")
    missing = set(range(size))
    while missing := {other for other in missing if not store.check([_key(other)])}:
        wait.for_what(f"processes {', '.join(map(str, sorted(missing)))} of {size}")
    if rank == 0:  # the last line where a firewall keeps them apart
        print(f"{size} processes met at {order.spec.rendezvous}; now they connect to each other", flush=True)
    store.set_timeout(timedelta(seconds=order.spec.hang_after_s))
    return store


def _connected(order: Order, rank: int, wait: _Wait) -> dist.Store:
    """Rank 0 serves; the others try until it does."""
    name, _, port = order.spec.rendezvous.rpartition(":")
    address = (name.strip("[]"), int(port))
    while rank and not _answers(address):
        wait.for_what(f"an answer of rank 0 at {order.spec.rendezvous}")
    return dist.TCPStore(
        *address, is_master=rank == 0, timeout=timedelta(seconds=_CONNECT_S), wait_for_workers=False
    )


def _answers(address: tuple[str, int]) -> bool:
    """The store itself would knock for many seconds, deaf to everything else."""
    try:
        socket.create_connection(address, _KNOCK_S).close()
    except OSError:
        return False
    return True


def _key(rank: int) -> str:
    return f"here/{rank}"


class _Wait:
    """Waits piece by piece, until a stop or the deadline, and says now and then what for."""

    def __init__(self, order: Order, stopped: Callable[[], bool]) -> None:
        self._stopped, self._limit_s = stopped, order.spec.hang_after_s
        self._began = self._told = time.monotonic()

    def for_what(self, missing: str) -> None:
        """One piece. Raises Stopped, PeersMissing."""
        now = time.monotonic()
        if self._stopped():
            raise Stopped
        if now - self._began > self._limit_s:
            raise PeersMissing(f"Waited {self._limit_s:g} s in vain for {missing}.")
        if now - self._told > _TELL_EVERY_S:
            self._told = now
            print(f"waiting for {missing}", flush=True)
        time.sleep(_LOOK_EVERY_S)
