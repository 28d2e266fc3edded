"""From proposals that compete for words to the ones that hold.

Coverage, negation and corrections decide.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from portal.intents.core.numbers import NUMBER, number, plain
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

AGAIN = "@again"  # a bare number that corrects the one before it
MARKER = (
    r"(?:(?:(?<=[.,-]\s)no(?=\s+\d)|no(?=\s*[,.!;:-]|\s+(?:wait|make|sorry|i\b|let|rather|actually))|nope|nah|wait|sorry|oops|hm+|argh|actually|rather|correction|scratch\s+that|on\s+second\s+thoughts?|i\s+mean(?:t)?|i\s+meant|make\s+(?:that|it)"
    r"|let'?s\s+(?:say|do|make\s+it)|better|change\s+(?:that|it)\s+to|strike\s+that|pardon|instead|forget\s+(?:that|it))(?!\w))"
)
_MARKER = re.compile(rf"(?<!\w){MARKER}")
_AGAIN = re.compile(
    rf"(?<!\w){MARKER}(?:[\s,.:;-]|{MARKER})*(?:(?:use|take|it\s+to|be|say|to)\s+)?(?P<n>{NUMBER})(?![\w.]\w|\w)(?!\s*[-/:]\d)"
)
_BUT = re.compile(rf"(?<!\w)but\s+(?:with\s+|use\s+|rather\s+)?(?P<n>{NUMBER})(?![\w.]\w|\w)(?!\s*[-/:]\d)")
_NOT = re.compile(
    r"(?<![\w'-])(?:no|not|without|w/o(?:ut)?|instead\s+of|rather\s+than|never|don'?t|avoid|except(?:\s+for)?|excluding|neither|nor|skip|other\s+than|isn'?t|shouldn'?t|anything\s+but)"
    r"(?:\s+(?:use|using|want|need|take|do|try|with|on|the|a|an|any|in|for|by|at|run|train|training|have|be|set|of|it|that|your|my|our|even|to|from|another|those|these|older|old|\d+)){0,4}\s*$"
)
# "I'd rather have qlora than full"; "rather no more than 4 epochs" denies nothing.
_RATHER = re.compile(
    r"\b(?:rather|sooner)\b[^,.;!?]{1,60}(?<!more )(?<!less )(?<!fewer )\bthan"
    r"(?:\s+(?:with|on|the|a|an))?\s*$"
)
_OFF = re.compile(
    r"\s*(?:is\s+|are\s+)?(?:=\s*)?(?:off|disabled|false|not\s+(?:needed|wanted|allowed|used))(?!\w)"
)


def again(text: Sentence) -> Iterable[Proposal]:
    """Proposals of bare numbers right after a correction."""
    for found in text.find(_AGAIN):
        value = number(found["n"], whole=True)
        if value is not None:
            yield Proposal(
                field=AGAIN, start=found.start("n"), end=found.end("n"), value=plain(value), weight=-1
            )
    for found in text.find(_BUT):
        value = number(found["n"], whole=True)
        if value is not None:
            start, end = found.span("n")
            yield Proposal(field=AGAIN, start=start, end=end, value=plain(value), note="but", weight=-1)


def scheduled(proposals: Iterable[Proposal], text: Sentence) -> list[Proposal]:
    """Return the proposals that share no word and explain the most.

    This is weighted interval scheduling.
    """
    spaces = [0]
    for character in text.low:
        spaces.append(spaces[-1] + character.isspace())
    ordered = sorted(proposals, key=lambda c: (c.end, c.start))
    ends = [proposal.end for proposal in ordered]
    best: list[float] = [0.0]
    take: list[bool] = []
    for i, proposal in enumerate(ordered):
        letters = proposal.end - proposal.start - (spaces[proposal.end] - spaces[proposal.start])
        with_it = best[bisect_right(ends, proposal.start, hi=i)] + max(0.5, letters + proposal.weight)
        take.append(with_it > best[-1])
        best.append(max(with_it, best[-1]))
    chosen, i = [], len(ordered)
    while i:
        if take[i - 1]:
            chosen.append(ordered[i - 1])
            i = bisect_right(ends, ordered[i - 1].start, hi=i - 1)
        else:
            i -= 1
    return chosen[::-1]


def is_denied(low: str, start: int, end: int) -> bool:
    """Is what stands there said not to be meant?"""
    return bool(_NOT.search(low[:start]) or _RATHER.search(low[:start]) or _OFF.match(low, end))


def without_denied(proposals: Sequence[Proposal], text: Sentence) -> tuple[list[Proposal], list[Proposal]]:
    """Proposals that hold, and those that a negation binds."""
    denied = [c for c in proposals if c.field not in ("", AGAIN) and is_denied(text.low, c.start, c.end)]
    return [c for c in proposals if c not in denied], denied


def corrected(proposals: Sequence[Proposal], denied: Sequence[Proposal], text: Sentence) -> list[Proposal]:
    """Later values in place of earlier ones where a correction stands between them.

    After "not 3 epochs but" a bare number stands in place of the denied one.
    """
    held: list[Proposal] = []
    for proposal in proposals:
        if proposal.field == AGAIN:
            source = denied if proposal.note == "but" else held
            numbers = [
                c
                for c in source
                if c.end <= proposal.start
                and isinstance(c.value, (int, float))
                and not isinstance(c.value, bool)
            ]
            if numbers:
                last = numbers[-1]
                held = [c for c in held if c.field != last.field]
                held.append(replace(last, value=proposal.value, start=proposal.start, end=proposal.end))
            continue
        before = [c for c in held if c.field == proposal.field and c.field]
        if before and (
            _MARKER.search(text.low, before[-1].end, proposal.end) or _INSTEAD.match(text.low, proposal.end)
        ):
            held = [c for c in held if c.field != proposal.field]
        held.append(proposal)
    return held


_INSTEAD = re.compile(r"\s*,?\s*instead(?!\s+of)(?!\w)")
