"""Facts about others, earlier runs or settings, which are beside the wish."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

# "Raise my quota and train ...": what follows is the wish.
_WISH = r"\s(?:and|but|then|so)\s+(?:please\s+|then\s+)?(?:re)?(?:train|tune|fine|run|use|start)"
_REST = rf"(?:(?!{_WISH})[^.;:,!?]|(?<=\d)[.,](?=\d))*"
_HEARSAY = tuple(
    re.compile(rf"(?<![\w-]){pattern}{_REST}")
    for pattern in (
        rf"(?:last|previous|earlier|first|old)\s+(?:run|job|attempt|training|try|model|one)\b{_REST}?\b(?:took|cost|used|ran|was|needed|had|got|gave|diverged|failed|crashed|overfit(?:ted)?|reached|ended|stopped|died)\b",
        r"(?:last|previous)\s+(?:year|month|week|time)\s+(?:we|i|they|it|he|she)\b",
        r"(?:took|paid|cost\s+(?:us|me|them|him|her))\b",
        r"(?:tutorial|paper|blog|colleague|friend|docs?|example|guide|article|post|boss|manager|readme|manual|card|authors?|forum|thread|teacher|everybody|everyone|somebody|someone|people)\s+(?:\w+\s+){0,3}?(?:use[sd]?|says?|said|suggest(?:s|ed)?|recommend(?:s|ed)?|propose[sd]?|advise[sd]?|mention(?:s|ed)?|had|trained|ran|took)\b",
        r"(?:set|raise|change|lower|increase|reduce|drop|cut|double)\s+(?:\w+\s+){0,4}(?:prices?|quotas?|priority)\b",
        r"(?:prices?|quotas?)\s+(?:of|for)\s+(?:\w+\s+){1,4}(?:should|must|shall|is|are|was|were)\b",
        r"(?:as|like)\s+in\s+the\s+(?:paper|tutorial|blog|docs?|example|guide)\b",
    )
)  # fmt: skip


def read(text: Sentence) -> Iterator[Proposal]:
    """Proposals that use the words of such clauses up."""
    for pattern in _HEARSAY:
        for found in text.find(pattern):
            yield Proposal(field="", start=found.start(), end=found.end(), weight=2)
