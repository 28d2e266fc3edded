"""The team that pays, and the job's name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

_PLAIN = r"[a-z][a-z']*"
_END = r"(?:and|with|on|using|for|please|in|by|from|to|at|then|train|fine|tune|lora|qlora|full)\b"
_NAME = re.compile(
    r"(?<!\w)(?:(?:call|name|title|label)\s+(?:it|this(?:\s+(?:job|run|one))?|the\s+(?:job|run)"
    r"|that)|(?:job|run)[\s_-]*name(?:\s+is|\s*[:=])?"
    r"|name(?:\s*[:=]|\s+is)|(?:job|run)\s+(?:named|called|titled)|(?:named|titled)(?!\s+(?:after"
    r"|entit)))\s*[:=]?\s*"
    r"(?:as\s+)?(?:\"(?P<quoted>[^\"]{1,200})\"|'(?P<single>[^']{1,200})'"
    rf"|(?P<bare>[a-z0-9][\w.+-]*[\d_-][\w.+-]*|{_PLAIN}(?:\s+(?!{_END}){_PLAIN}){{0,4}}(?=\s*(?:$"
    rf"|[,;:.!?)])|\s+{_END})|[a-z0-9][\w.+-]*))"
)


def read(text: Sentence, teams: Sequence[str]) -> Iterator[Proposal]:
    """Proposals of one of the person's own teams, and of a name that is given."""
    for found in text.find(_NAME):
        group = next(name for name in ("quoted", "single", "bare") if found[name] is not None)
        typed = text.as_typed(*found.span(group)).strip().rstrip(".,:;")
        if typed and typed.isprintable():
            yield Proposal(field="name", start=found.start(), end=found.end(), value=typed, weight=12)
    for team in teams:
        word = r"[\s_-]+".join(re.escape(part) for part in re.split(r"[\s_-]+", team.lower()))
        said = (
            rf"(?<![\w-])(?:team\s*(?:[:=]|is)?\s*{word}|(?:the\s+)?{word}(?:'s)?[\s-]+(?:team|group"
            r"|folks|people|budget|account|cost cent(?:re|er))|(?:charge|bill|book|costs?)\s+(?:it\s+"
            rf"|this\s+)?(?:to|on)\s+(?:the\s+)?{word}|on\s+behalf\s+of\s+(?:the\s+)?{word}|^for\s+(?:the\s+)?{word}(?=\s*:)|{word}\s+"
            r"(?:pays|will\s+pay))(?:\s+(?:pays|team))?(?![\w-]|\.\w)"
)  # fmt: skip
        for found in re.finditer(said, text.low):
            yield Proposal(field="team", start=found.start(), end=found.end(), value=team, weight=4)
