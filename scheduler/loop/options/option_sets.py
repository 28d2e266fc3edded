"""Options as decisions name them: packed once a process, and stored once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import NamedTuple

from knowledge.core.domain.types import Option
from scheduler.core.decisions.decision_json import options_digest, pack_options
from scheduler.core.types import ClusterState
from scheduler.models import Decision, OptionSet

SLICE = 1000  # values a query: databases limit their number


class PackedOptions(NamedTuple):
    """A job's options, their digest, and how they are stored."""

    options: tuple[Option, ...]
    digest: str
    stored: bytes


class _StoredSets(NamedTuple):
    """Digests whose rows are known to be stored and noted for the day.

    They are known as of a decision that this process has kept.
    """

    decision: int
    at: datetime
    digests: frozenset[str]


# By the options' identities: most are the same from tick to tick. An entry holds its options, so that no
# other object has their identity.
_packed: dict[tuple[int, ...], PackedOptions] = {}
_noted: _StoredSets | None = None


def pack_all(state: ClusterState) -> dict[str, PackedOptions]:
    """The options of each job that has any.

    Sets that no job has any more are forgotten.
    """
    global _packed
    before, _packed = _packed, {}
    found: dict[str, PackedOptions] = {}
    for job in state.jobs:
        if job.options:
            key = tuple(map(id, job.options))
            known = _packed.get(key) or before.get(key)
            if known is None:
                stored = pack_options(job.options)
                known = PackedOptions(job.options, options_digest(stored), stored)
            found[job.id] = _packed[key] = known
    return found


def store(options: Mapping[str, PackedOptions], decision: Decision, before: Decision | None) -> None:
    """Store what is not stored yet, and note the day of the decision for what is.

    before: the newest decision until now. If it is this process's own, its options need no second look.
    """
    global _noted
    today, rows = decision.at.date(), {one.digest: one.stored for one in options.values()}
    known: frozenset[str] = frozenset()
    if before and _noted and _noted[:2] == (before.pk, before.at) and before.at.date() == today:
        known = _noted.digests
    names = sorted(rows.keys() - known)
    for start in range(0, len(names), SLICE):
        _note({name: rows[name] for name in names[start : start + SLICE]}, today)
    _noted = _StoredSets(decision.pk, decision.at, frozenset(rows))


def _note(rows: Mapping[str, bytes], today: date) -> None:
    noted = OptionSet.objects.filter(digest__in=rows, used_on=today)
    new = sorted(rows.keys() - set(noted.values_list("digest", flat=True)))
    OptionSet.objects.bulk_create(
        [OptionSet(digest=name, used_on=today, size=len(rows[name]), options=rows[name]) for name in new],
        update_conflicts=True,
        unique_fields=["digest"],
        update_fields=["used_on"],
    )
