"""Where other nodes reach this one, for trainings over several nodes."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from trainer.agent.errors import Declined


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """This node as others see it.

    ports: those that may be served on; 0 stands for any free one.
    """

    portal: str
    address: str = ""
    ports: Sequence[int] = (0,)

    def rendezvous(self) -> str:
        """host:port where nobody listens yet. Raises Declined."""
        address = self.address or _way_to(self.portal)
        return f"[{address}]:{self._port()}" if ":" in address else f"{address}:{self._port()}"

    def interface(self) -> str:
        """Return the network interface that has the address.

        Empty where none has it, as behind a translated one.
        """
        try:
            found = socket.getaddrinfo(self.address or _way_to(self.portal), None)
        except (OSError, Declined):
            return ""
        own = {str(entry[4][0]) for entry in found}
        interfaces = psutil.net_if_addrs().items()
        return next((name for name, at in interfaces if own & {entry.address for entry in at}), "")

    def _port(self) -> int:
        for port in random.sample(list(self.ports), len(self.ports)):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the store will
                try:
                    probe.bind(("", port))
                except OSError:
                    continue
                return int(probe.getsockname()[1])
        raise Declined(f"no port from {min(self.ports)} to {max(self.ports)} is free; see --ports")


def _way_to(portal: str) -> str:
    """Return the local address that connections to the portal come from.

    Nothing is sent. Raises Declined.
    """
    parts = urlsplit(portal)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        family, kind, _, _, address = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise Declined(f"the address of this node is not known ({error}); give --address") from error
