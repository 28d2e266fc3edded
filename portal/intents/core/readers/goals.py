"""Words for what matters most: time or money."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

_FAST = (
    r"(?:as\s+)?fast(?:er|est)?(?:\s+as\s+(?:possible|you can|it gets))?(?:\s+(?:possible|way|run)"
    r")?|asap|a\.s\.a\.p\.?|urgent(?:ly)?|urgency"
    r"|(?:as\s+)?quick(?:ly|est|er)?(?:\s+as\s+(?:possible|you can))?|as\s+soon\s+as\s+(?:possible"
    r"|you can)|in\s+a\s+(?:hurry|rush)"
    r"|speed\s+(?:matters|is|over|first)(?:\s+\w+){0,3}|(?:min(?:imal|imum|imi[sz]e)|shortest"
    r"|least)\s+(?:the\s+)?(?:time|duration|run\s?time|wall\s?time)"
    r"|right\s+away|immediately|no\s+time\s+to\s+(?:lose|waste)|time\s+is\s+(?:critical|short"
    r"|of the essence)|hurry(?:\s+up)?|rush(?:\s+job)?|speedy|pronto"
    r"|(?:cost|money|price)\s+(?:is\s+no\s+(?:object|issue)|(?:does\s?n'?t|does not)\s+matter)"
)
_CHEAP = (
    r"(?:as\s+)?cheap(?:ly|est|er|o)?(?:\s+as\s+(?:possible|you can|it gets))?(?:\s+(?:possible|way"
    r"|option|run))?|(?:low|lowest|least|minimal|minimum|min)[\s-]+(?:cost|price|spend|budget"
    r"|expensive)s?|inexpensive(?:ly)?|economic(?:al|ally)"
    r"|(?:not\s+(?:too\s+|so\s+|very\s+|be\s+(?:too\s+)?)?|less\s+|isn't\s+too\s+|nothing\s+(?:too\s+"
    r")?)(?:expensive|pricey|costly)"
    r"|(?:keep|keeping|hold)\s+(?:the\s+)?(?:costs?|price|spend(?:ing)?|bill)\s+(?:down|low|small"
    r"|minimal)|save\s+(?:us\s+|me\s+|some\s+)?(?:money|costs?|budget)|saving\s+money|save\s+costs?"
    r"|minimi[sz]e\s+(?:the\s+)?(?:costs?|spend(?:ing)?|price)"
    r"|(?:budget|wallet)[\s-]friendly|(?:cost|price)\s+matters(?:\s+most)?|(?:as\s+little\s+"
    r"(?:money\s+)?as\s+possible|without\s+(?:spending|breaking)\s+(?:the\s+bank|a lot|much"
    r"|too much))|on\s+a\s+shoestring|frugal(?:ly)?|thrifty|affordabl[ey]|tight\s+budget"
    r"|(?:don't|do not|not)\s+(?:want to\s+)?(?:spend|pay|cost)\s+(?:too\s+|very\s+)?(?:much|a lot"
    r"|a fortune)|low\s+on\s+(?:money|budget|funds)"
    r"|(?:money|budget|funds)\s+(?:is|are)\s+(?:very\s+|rather\s+)?(?:tight|short|scarce|limited)"
)
_BALANCED = (
    r"balanced?|(?:good\s+|sensible\s+|reasonable\s+)?(?:compromise|trade[\s-]?off|middle\s+ground)"
    r"(?:\s+between\s+\w+\s+and\s+\w+)?|balance\s+(?:of|between)\s+\w+\s+and\s+\w+"
)
_NEVER = re.compile(
    r"(?:no|not|never|without|don'?t|doesn'?t|needn'?t|isn'?t|n't|need\s+not)\s+(?:(?:an?|any|in|to"
    r"|be|have|has|need|needs|want|that|so|too|very|really|particularly|care|about|it|need\s+to"
    r"|real|such|all)\s+){0,4}$"
)
_NAMES = re.compile(r"(?:call|name|named|called)\s+(?:it|the job|this)?\s*$")
_WORDS = tuple(
    (value, re.compile(rf"(?<![\w./-])(?:{pattern})(?![\w/]|-\w|\.\w)"))
    for value, pattern in (("fastest", _FAST), ("cheapest", _CHEAP), ("balanced", _BALANCED))
)
_NO_LIMIT = re.compile(r"(?<!\w)(?:no|without(?:\s+an?y?)?|not\s+an?y?)\s+(?:hard\s+|strict\s+)?(?:deadline"
    r"|budget(?:\s+limit)?|rush|hurry|limit(?:\s+on\s+\w+)?)\b|(?<!\w)(?:budget|time|deadline)\s+(?:is\s+"
    r")?(?:unlimited|does\s?n'?t\s+matter|no\s+issue|open)\b|(?<!\w)(?:any\s?time|whenever"
    r"|take\s+your\s+time)\b")  # fmt: skip
_IDIOM = re.compile(r"breakfast|fast[\s-]?(?:text|api|food|tokenizer)|quick\s?(?:books|sort|start)"
    r"|cheap\s+talk"
    r"|balance(?:d)?\s+(?:sheets?|data\w*|class\w*|sample\w*)|quick\s+(?:question|test(?:\s+run)?|check"
    r"|note|try|one)")  # fmt: skip


def read(text: Sentence) -> Iterator[Proposal]:
    """Propose the goals that are said.

    The ones that follow from limits are inferred later.
    """
    for pattern in (_NO_LIMIT, _IDIOM):
        for found in text.find(pattern):
            yield Proposal(field="", start=found.start(), end=found.end(), weight=6)
    for value, pattern in _WORDS:
        for found in text.find(pattern):
            before = text.low[: found.start()]
            denied = _NEVER.search(before) and not found.group().startswith(("not ", "don't", "do not"))
            named = _NAMES.search(before)
            yield Proposal(
                field="" if denied or named else "goal", start=found.start(), end=found.end(), value=value
            )
