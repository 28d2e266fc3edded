"""Whether anything can start: which nodes take work, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.models import Node
from scheduler.selectors.silence import NODE_STATES, SILENT, shown_node_state
from scheduler.states import NodeState

TOGETHER = timedelta(minutes=1)  # nodes that fell silent within it fell silent at one time
NAMED = 3
COLUMNS = ("name", "state", "reason", "block_kind", "last_seen_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """All nodes by the state in which people see them.

    away: the nodes of each state but `ready`, the longest silent ones first.
    """

    nodes: int
    ready: int
    away: Mapping[str, Sequence[Node]]

    @property
    def silent(self) -> Sequence[Node]:
        return self.away.get(SILENT, ())

    def count(self, state: str) -> int:
        """How many nodes people see in a state."""
        return self.ready if state == NodeState.READY else len(self.away.get(state, ()))

    @property
    def named(self) -> Sequence[Node]:
        """The silent nodes, where they are few enough to be named."""
        return self.silent if len(self.silent) <= NAMED else ()

    @property
    def silent_at_once(self) -> bool:
        """Whether all silent nodes fell silent at one time."""
        return bool(self.silent) and self.silent[-1].last_seen_at - self.silent[0].last_seen_at <= TOGETHER

    @property
    def nothing_starts(self) -> bool:
        return bool(self.nodes) and not self.ready

    @property
    def reasons(self) -> list[tuple[str, int, list[Node]]]:
        """(state, nodes in it, those that say why) but for `ready` and `silent`."""
        return [
            (state, len(nodes), [node for node in nodes if node.reason][:NAMED])
            for state, nodes in self.away.items()
            if state != SILENT
        ]


def availability(now: datetime) -> Availability:
    """The nodes as they are; one query."""
    found: dict[str, list[Node]] = {state: [] for state in NODE_STATES}
    for node in Node.present.only(*COLUMNS).order_by("last_seen_at", "name"):
        found[shown_node_state(node, now)].append(node)
    ready = len(found.pop(NodeState.READY))
    away = {state: nodes for state, nodes in found.items() if nodes}
    return Availability(nodes=ready + sum(map(len, away.values())), ready=ready, away=away)
