"""Training and validation files.

They are told by names as written, `the same data as last time`, and words of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal.intents.core.names.file_index import FileIndex
from portal.intents.core.spans import Sentence
from portal.intents.core.types import INFERRED, Proposal

TRAINING, VALIDATION = "training_file", "validation_file"
UNSEEN = "@unseen"  # a full file name that the person has not
_NAME = re.compile(
    r"(?<![\w.])(?P<path>[\w.~:-]*[/\\](?:[\w.-]*[/\\])*)?[^\W_][\w.+-]*\.(?:jsonl|ndjson|json|csv"
    r"|tsv|txt|parquet|arrow|zip|xlsx?|pdf|docx?)(?!\w)"
)
_VALID = (
    r"(?:valid(?:ation)?|validat(?:e|ed|ing)|val|eval(?:uat(?:e|ed|ion|ing))?|dev(?:elopment)?"
    r"|test(?:ed|ing)?|hold[\s-]?out|held[\s-]out|check(?:ed|ing)?|measur(?:e|ed|ing))(?:[\s_-]*(?:set"
    r"|data|file|split|dataset|loss|it|the\s+(?:model|result)))*"
)
_ROLE_BEFORE = re.compile(
    rf"(?<![\w-]){_VALID}\s*(?:(?:on|with|against|using|is|=|:|from|->|in|should\s+be"
    r"|comes\s+from)\s*)*(?:the\s+|my\s+|our\s+)?$"
)
_ROLE_AFTER = re.compile(
    r"\s*,?\s*(?:is\s+|goes\s+|should\s+be\s+|be\s+|used\s+|only\s+|just\s+|file\s+|data\s+)*"
    rf"(?:for|as|=|to|\()\s*(?:the\s+|my\s+|a\s+|our\s+)?{_VALID}(?![\w-]|\.\w)"
)
_SAME = re.compile(
    r"(?<!\w)(?:(?:the\s+)?same\s+(?:\w+\s+)?(?:data|dataset|file|training\s+(?:data|file|set)|set"
    r"|examples|jsonl|stuff)(?:\s+(?:as|like|we|i|from|that|again)(?:\s+\w+){0,3}?\s+(?:last|before"
    r"|previous(?:ly)?|yesterday|time|earlier|job|run|used|again))?(?:\s+(?:time|job|run|one|week)"
    r")?"
    r"|(?:the\s+)?(?:data|dataset|file)\s+(?:from|of|as\s+in|that\s+i\s+used)\s+(?:the\s+|my\s+"
    r"|our\s+)?(?:last|previous|latest)\s+(?:time|job|run|one|training)|(?:my\s+|the\s+|our\s+)?"
    r"(?:last|previous)\s+(?:job|run|time|training)'?s\s+(?:data|dataset|file)|(?:the\s+)?"
    r"(?:previous|last)\s+(?:dataset|training\s+(?:data|file)|data(?:\s+file)?)|same\s+as\s+"
    r"(?:last\s+time|before))(?!\w)"
)


def read(text: Sentence, index: FileIndex, newest_job_file: str | None) -> Iterator[Proposal]:
    """Proposals of files by their full names, and of the newest job's file."""
    found = list(text.find(_NAME))
    for match in found:
        start, end = match.span()
        known = None if match["path"] else index.by_name.get(match.group())
        field = role(text.low, start, end) if known else UNSEEN
        yield Proposal(field=field, start=start, end=end, value=known, weight=60)
    for name in index.spaced:
        if (at := text.low.find(name)) >= 0:
            yield Proposal(field=TRAINING, start=at, end=at + len(name), value=index.by_name[name], weight=60)
    for match in text.find(_SAME):
        last = newest_job_file
        source = "of the newest job" if last else "there is no earlier job"
        field = TRAINING if last else ""
        yield Proposal(
            field=field,
            start=match.start(),
            end=match.end(),
            value=last,
            origin=INFERRED,
            note=source,
            weight=6,
        )


def role(low: str, start: int, end: int) -> str:
    """Which of the two files the words around a name speak of."""
    if _ROLE_BEFORE.search(low[:start]) or _ROLE_AFTER.match(low, end):
        return VALIDATION
    return TRAINING
