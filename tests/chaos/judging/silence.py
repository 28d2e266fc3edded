"""The time for which a node was not heard of while the portal served.

It is computed from what was observed. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tests.chaos.watch import EVERY_S, Timeline

GAP = 1 / 3  # of a lease: a node that gives no answer for longer is away (docs/adr/0009)
JITTER = 0.2  # of a lease: between two looks of ours
UNSEEN_S = 2 * EVERY_S  # what was served at both ends of a gap, between two looks of ours


@dataclass(frozen=True, slots=True)
class Silences:
    """Judges losses of nodes: a lease counts only while the portal serves."""

    seen: Timeline
    lease_s: float

    def too_short(self, node: str, lost_at: float) -> str:
        """Why a node should not have been lost then; empty if it was silent for a lease."""
        served_s = self.served_s(node, lost_at)
        if served_s >= self.lease_s * (1 - JITTER):
            return ""
        return f"silent for {served_s:.1f} s of {self.lease_s:g} s in which the portal served"

    def beyond_s(self, node: str, lost_at: float) -> float:
        """How much later than its lease a node was lost."""
        return max(0.0, self.served_s(node, lost_at) - self.lease_s)

    def served_s(self, node: str, until: float) -> float:
        """Return the seconds of service since the portal last heard of the node.

        Only time counts in which the portal answered our requests or those of any other node.
        """
        heard = max((at for at in self._heard(node) if at < until), default=until)
        served = {at for at, good in self.seen.answers if good}
        served |= {at for rows in self.seen.rows for _, at in rows.nodes.values()}
        answers = sorted(at for at in served if heard < at < until)
        gaps = (end - begin for begin, end in pairwise([heard, *answers, until]))
        return sum(gap for gap in gaps if gap <= self.lease_s * GAP + UNSEEN_S)

    def _heard(self, node: str) -> list[float]:
        return [rows.nodes[node][1] for rows in self.seen.rows if node in rows.nodes]
