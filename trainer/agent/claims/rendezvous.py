"""The place where the nodes of one attempt meet.

The node of rank 0 tells it, the others wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from trainer.agent.claims.store import ClaimRecord
from trainer.agent.errors import Interrupted, PeerAway
from trainer.agent.node.network import Site
from trainer.agent.storage.spool import Spool
from trainer.protocol import ReportKind, Spec

HEAR_WITHIN_S = 300.0  # the node of rank 0 may still be fetching its inputs
_LOOK_EVERY_S = 0.2


class Rendezvous:
    """A claim's rendezvous. `changed` is called when the portal should hear at once."""

    def __init__(self, record: ClaimRecord, spool: Spool, site: Site, changed: Callable[[], None]) -> None:
        self._record, self._spool, self._site, self._changed = record, spool, site, changed
        self._address = ""

    def learn(self, address: str) -> None:
        """Take the address that the portal knows."""
        self._address = address

    def spec_with_address(self, stopping: threading.Event) -> Spec:
        """Return the claim's spec with the address of the meeting place.

        The address stays the same whatever happens to this agent. Raises Interrupted, PeerAway,
        and Declined where this node has no address or port to offer.
        """
        spec = self._record.spec
        if spec.nodes == 1:
            return spec
        if not spec.rendezvous:
            address = self._await(stopping) if spec.rank else self._site.rendezvous()
            spec = self._record.spec = replace(spec, rendezvous=address)
            self._record.save()
        if not spec.rank and ReportKind.RENDEZVOUS not in self._spool.kinds:
            self._spool.add(ReportKind.RENDEZVOUS, {"address": spec.rendezvous})
            self._changed()
        return spec

    def _await(self, stopping: threading.Event) -> str:
        deadline = time.monotonic() + HEAR_WITHIN_S
        while not self._address:
            if stopping.wait(_LOOK_EVERY_S):
                raise Interrupted("stopped while it waited for the node of rank 0")
            if time.monotonic() > deadline:
                raise PeerAway(f"the node of rank 0 did not say within {HEAR_WITHIN_S:g} s where to meet it")
        return self._address
