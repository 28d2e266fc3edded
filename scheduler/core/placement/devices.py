"""Which of a node's GPUs is which, from one report of its agent to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainer.protocol_parsing import device_of


@dataclass(frozen=True, slots=True)
class Slot:
    """A GPU as a node reports it, or as the portal knows it."""

    index: int
    model: str
    uuid: str


class Matching(NamedTuple):
    """Pairs of a known and a reported slot; those that have no counterpart."""

    pairs: Sequence[tuple[Slot, Slot]]
    missing: Sequence[Slot]
    added: Sequence[Slot]

    @property
    def is_whole(self) -> bool:
        return not self.missing and not self.added

    @property
    def exchanged(self) -> Sequence[tuple[Slot, Slot]]:
        """Pairs in which one GPU has taken the place of another."""
        return [
            (old, new)
            for old, new in self.pairs
            if device_of(old.uuid) and device_of(new.uuid) not in (None, device_of(old.uuid))
        ]


def match(known: Sequence[Slot], reported: Sequence[Slot]) -> Matching:
    """Return which known GPU each reported one is.

    A UUID tells, wherever the GPU is counted now. The others take the places of their model in their order:
    GPUs without UUIDs, and those that were put in for others of the same model.
    """
    by_device = {(device_of(slot.uuid), slot.model): slot for slot in known if device_of(slot.uuid)}
    pairs = [
        (old, new)
        for new in reported
        if (device_of(new.uuid) and (old := by_device.get((device_of(new.uuid), new.model))))
    ]
    taken, placed = {old for old, _ in pairs}, {new for _, new in pairs}
    left = [slot for slot in known if slot not in taken]
    added = []
    for new in reported:
        if new in placed:
            continue
        alike = [old for old in left if old.model == new.model]
        # Its own number first: slots without UUIDs stay where they are.
        place = next((old for old in alike if old.index == new.index), next(iter(alike), None))
        if place is None:
            added.append(new)
        else:
            left.remove(place)
            pairs.append((place, new))
    return Matching(pairs=pairs, missing=left, added=added)


def difference(matching: Matching) -> str:
    """What is missing and what was added, in words."""
    parts = [
        f"{word} {', '.join(_named(slot) for slot in slots)}"
        for word, slots in (("without", matching.missing), ("with the new", matching.added))
        if slots
    ]
    return " and ".join(parts)


def _named(slot: Slot) -> str:
    return f"GPU {slot.index} ({slot.model}{f', {slot.uuid}' if device_of(slot.uuid) else ''})"
