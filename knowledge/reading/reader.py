"""From a tree of files and a command to what they state. User code is never run."""

from __future__ import annotations

from knowledge.reading.collecting import StatementCollector
from knowledge.reading.resolving import resolved
from knowledge.reading.types import Reading, Tree
from knowledge.reading.unsupported import unknown_keys, unsupported
from knowledge.reading.values import can_be_kept


def read(tree: Tree) -> Reading:
    """Read what the tree states of its training, with the lines that say so."""
    collector = StatementCollector(tree)
    collector.collect()
    stated = [one for one in collector.statements if can_be_kept(one.value)]
    values, contradictions = resolved(stated)
    return Reading(
        values=values,
        contradictions=contradictions,
        unsupported=unsupported(values, collector.scripts, collector.stated),
        unknown_keys=unknown_keys(collector.scripts, collector.stated),
        unreadable=collector.unreadable,
    )
