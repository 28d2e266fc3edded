"""From a tree of files and a command to what they state. User code is never run."""

from __future__ import annotations

from knowledge.reading.collecting import StatementCollector
from knowledge.reading.resolving import resolved
from knowledge.reading.types import Reading, Tree
from knowledge.reading.unsupported import unsupported


def read(tree: Tree) -> Reading:
    """Read what the tree states of its training, with the lines that say so."""
    collector = StatementCollector(tree)
    collector.collect()
    values, contradictions = resolved(collector.statements)
    return Reading(
        values=values,
        contradictions=contradictions,
        unsupported=unsupported(values, collector.scripts),
        unreadable=collector.unreadable,
    )
