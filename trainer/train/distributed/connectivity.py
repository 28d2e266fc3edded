"""Do the nodes of a training reach each other, beyond the port where they met?

gloo and NCCL connect all pairs of nodes on ports that the system chooses. Behind a firewall they would wait
for many minutes without a word; here each node opens such a port and knocks at those of the others.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import psutil
import torch.distributed as dist

from trainer.train.errors import PeersMissing
from trainer.train.settings import TrainingSpec

Address = tuple[str, int]
_PROBE_S = 5.0
_TRIES = 3


def check(order: TrainingSpec, store: dist.Store, rank: int, wait_for: Callable[[str], None]) -> None:
    """Check that the nodes reach each other.

    To be called by all processes, over the store that they share. Raises PeersMissing, in all
    of them, where a node does not reach another.
    wait_for: waits a moment or raises.
    """
    node, first = divmod(rank, len(order.spec.gpus))
    if not first:
        with listener(order) as address:
            addresses = _exchanged(store, "address", node, _written(address), order.spec.nodes, wait_for)
            closed = unreachable(_read(text) for other, text in enumerate(addresses) if other != node)
            closed = closed and f"{socket.gethostname()} does not reach {closed}"
            found = _exchanged(store, "way", node, closed, order.spec.nodes, wait_for)
    else:
        found = _awaited(store, "way", order.spec.nodes, wait_for)
    if wrong := [text for text in found if text]:
        raise PeersMissing(
            f"They met at {order.spec.rendezvous}, but {'; '.join(wrong[:3])}. Open all TCP ports between the"
            " nodes, in both directions, or name another network with --address of the agents."
        )


def _exchanged(
    store: dist.Store, what: str, node: int, said: str, nodes: int, wait_for: Callable[[str], None]
) -> list[str]:
    store.set(f"{what}/{node}", said)
    return _awaited(store, what, nodes, wait_for)


def _awaited(store: dist.Store, what: str, nodes: int, wait_for: Callable[[str], None]) -> list[str]:
    """Wait for the answers of all nodes."""
    for node in range(nodes):
        while not store.check([f"{what}/{node}"]):
            wait_for(f"node {node} of {nodes} to knock at the ports of the others")
    return [store.get(f"{what}/{node}").decode() for node in range(nodes)]


@contextmanager
def listener(order: TrainingSpec) -> Iterator[Address | None]:
    """Open a port that takes connections.

    It is on the interface that the training will talk over.
    """
    host = _own_address(order)
    if not host:
        yield None
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, backlog=256) as server:
        yield host, server.getsockname()[1]


def _own_address(order: TrainingSpec) -> str:
    """Return this process's own address for the training's traffic.

    Empty where the interface is not named in so many words: NCCL alone knows its choice then.
    """
    variable = "NCCL_SOCKET_IFNAME" if order.device == "cuda" else "GLOO_SOCKET_IFNAME"
    found = psutil.net_if_addrs().get(os.environ.get(variable, "").removeprefix("="), [])
    family = socket.AF_INET6 if order.spec.rendezvous.startswith("[") else socket.AF_INET
    return next((at.address for at in found if at.family == family and not at.address.startswith("fe80")), "")


def unreachable(addresses: Iterable[Address | None]) -> str:
    """The first address that cannot be reached, and why; empty if all can."""
    for address in addresses:
        if address is not None and (why := _probe(address)):
            return f"{address[0]}:{address[1]} ({why})"
    return ""


def _probe(address: Address) -> str:
    why = ""
    for _ in range(_TRIES):
        try:
            socket.create_connection(address, _PROBE_S).close()
        except OSError as error:
            why = str(error)
        else:
            return ""
    return why


def _written(address: Address | None) -> str:
    return "" if address is None else f"{address[0]} {address[1]}"


def _read(text: str) -> Address | None:
    host, _, port = text.rpartition(" ")
    return (host, int(port)) if host else None
