"""Facts about others, earlier runs or settings, which are beside the wish."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

_REST = r"[^.;:,!?]*"
_HEARSAY = tuple(
    re.compile(rf"(?<![\w-]){pattern}{_REST}")
    for pattern in (
        rf"(?:last|previous|earlier|first|old)\s+(?:run|job|attempt|training|try|model|one)\b{_REST}?\b(?:took|cost|used|ran|was|needed|had)\b",
        r"(?:last|previous)\s+(?:year|month|week|time)\s+(?:we|i|they|it|he|she)\b",
        r"(?:took|paid|cost\s+(?:us|me|them|him|her))\b",
        r"(?:tutorial|paper|blog|colleague|friend|docs?|example|guide|article|post|boss|manager)\s+(?:\w+\s+){0,3}?(?:use[sd]?|says?|said|suggest(?:s|ed)?|recommend(?:s|ed)?|had|trained|ran|took)\b",
        rf"(?:set|raise|change|lower|increase|reduce|drop|cut|double)\s+(?:\w+\s+){{0,4}}(?:prices?|quotas?|priority)\b{_REST}",
        r"(?:as|like)\s+in\s+the\s+(?:paper|tutorial|blog|docs?|example|guide)\b",
    )
)  # fmt: skip


def read(text: Sentence) -> Iterator[Proposal]:
    """Proposals that use the words of such clauses up."""
    for pattern in _HEARSAY:
        for found in text.find(pattern):
            yield Proposal(field="", start=found.start(), end=found.end(), weight=2)
