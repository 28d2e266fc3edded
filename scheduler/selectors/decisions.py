"""Decisions read again, made again and explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from scheduler.core.decisions.decision_json import (
    Options,
    PackedInput,
    UnreadableDecision,
    unpack_options,
    unpack_plan,
)
from scheduler.core.decisions.replay import differences, replay
from scheduler.models import Decision, OptionSet

SLICE = 1000  # values a query: databases limit their number


class Replayed(NamedTuple):
    """A decision that was made again.

    `differences`: none if the plan is identical.
    """

    actions: int
    differences: list[str]


def replay_decision(decision: Decision) -> Replayed:
    """Let the policy decide again, by this release.

    Raises UnreadableDecision.
    """
    packed = PackedInput(bytes(decision.input))
    before = unpack_plan(bytes(decision.plan))
    given = packed.given(options_by_digest(packed.digests()))
    after = replay(decision.policy, decision.parameters, given)
    return Replayed(len(after.actions), list(differences(before, after)))


def options_by_digest(digests: Iterable[str]) -> Mapping[str, Options]:
    """The options that are kept under these digests.

    Raises UnreadableDecision.
    """
    names, found = sorted(digests), dict[str, Options]()
    for start in range(0, len(names), SLICE):
        rows = OptionSet.objects.filter(digest__in=names[start : start + SLICE])
        found |= {row.digest: unpack_options(bytes(row.options)) for row in rows}
    return found


__all__ = ["Replayed", "UnreadableDecision", "options_by_digest", "replay_decision"]
