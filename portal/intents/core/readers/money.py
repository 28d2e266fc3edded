"""Amounts of money.

They limit what the job may cost, in the portal's one currency.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal.intents.core.numbers import THOUSAND, WORDS, number, plain
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

CURRENCIES = {
    "EUR": r"€|eur(?:os?)?",
    "USD": r"us\$|\$|usd|(?:us\s+)?dollars?|bucks?",
    "GBP": r"£|gbp|pounds?(?:\s+sterling)?|quid",
    "JPY": r"¥|jpy|yen",
    "INR": r"₹|inr|rs\.?|rupees?",
    "CHF": r"chf|(?:swiss\s+)?francs?|franken",
    "BRL": r"r\$|brl|reais|real",
    "CAD": r"cad", "AUD": r"aud|a\$", "SEK": r"sek", "CNY": r"cny|rmb|yuan", "SGD": r"sgd|s\$",
    "PLN": r"pln|zloty", "ZAR": r"zar|rand",
}  # fmt: skip
_ANY = "|".join(CURRENCIES.values())
_AMOUNT = (
    r"(?:-?\d{1,3}(?:[,'.]\d{3})+(?:[.,]\d{1,2})?(?![\d])|-?\d+(?:[.,]\d+)?(?:e[+-]?\d+)?)"
    rf"(?:\s?k\b)?|{WORDS}"
)
_OTHER_UNIT = (
    r"(?!\s*(?:-|to|and)\s*\d)(?!\s*(?:-\s*)?(?:%|x\s?\d|x\s|:\d|/\d|(?:\w+\s+)?(?:epochs?|steps?|iterations?|gpus?|cards?"
    r"|nodes?|tokens?|hours?|hrs?|h|minutes?"
    r"|mins?|days?|d|weeks?|months?|samples?|rows?|k|b|gb|passes|bits?|am|pm|o'clock|ranks?|a100s?"
    r"|h100s?|[alht]\d+\w*|rtx)\b))"
)
_LIMIT = (
    r"(?:don't|do\s+not|not|never|shouldn't|mustn't|can't|won't|cannot)\s+(?:want\s+(?:to|it\s+to)\s+"
    r")?(?:spend|cost|pay|exceed|go|be)(?:\s+(?:more\s+than|over|above|beyond))?|"
    r"under|below|less than|(?:no|not) more than|at most|up to|max(?:imum)?(?:imal)?(?: of)?"
    r"|cap(?:ped)?(?: (?:of|at))?"
    r"|nothing (?:above|over|beyond|(?:more|dearer|pricier|costlier|more expensive) than)"
    r"|not (?:above|over|exceed(?:ing)?)|within|limit(?:ed)?(?: (?:of|is|to))?|spend(?:ing)?"
    r"(?: (?:at most|up to|no more than|max))?"
    r"|keep it (?:under|below)|<=?|≤|ceiling(?: of)?"
)
_BUDGET = (
    r"(?:my\s+|our\s+|the\s+)?(?:budget|spend(?:ing)?(?:\s+limit)?|cost(?:s)?(?:\s+(?:limit|cap"
    rf"|ceiling))?)\s*(?:limit|cap)?\s*(?:=|:|-\s|of|is|at|to|limited to|capped at)?\s*(?:(?:{_LIMIT}"
    r"|about|around|only|just|exactly|roughly|~)\s*)?"
)
_LEAD = r"(?<![\w.,-])"
_RATE = r"(?P<rate>\s*(?:/|per|an?|each|every)\s*(?:gpu|hour|h|hr|day|node|month|card)\b)?"
_MONEY = re.compile(
    rf"{_LEAD}(?:(?P<key>{_BUDGET})|(?P<limit>(?:{_LIMIT})\s+))?(?:(?P<pre>{_ANY})\s?"
    rf"(?P<a>{_AMOUNT})(?![\w]|/\d|\s*-\s*\d)|(?P<b>{_AMOUNT})\s?(?P<post>{_ANY})(?![\w])){_RATE}"
)
_KEYED = re.compile(rf"{_LEAD}(?:{_BUDGET})(?P<n>{_AMOUNT})(?![\w/]){_OTHER_UNIT}")
_TAILED = re.compile(
    rf"{_LEAD}(?P<n>{_AMOUNT})\s+(?:is\s+(?:my|our|the)\s+)?(?:budget|max budget|budget max)\b"
)
_BARE = re.compile(rf"{_LEAD}(?P<limit>{_LIMIT})\s*(?P<n>\d[\d,.']*(?:k\b)?|{WORDS})(?!\w){_OTHER_UNIT}"
    r"(?=\s*(?:$"
    r"|[,;.!?)/]|and\b|but\b|or\b|for\b|please\b|total\b|in total\b|by\b|with\b|on\b|-))")  # fmt: skip
_AT_LEAST = re.compile(
    r"(?:at least|more than|over|above|from|than|saves?|saved|earn(?:s|ed)?|worth"
    r"|spent|paid|wasted|burn(?:t|ed)|refunded)\s*$"
)
# "At least 4 GPUs and not over 8" goes on with GPUs.
_GOES_ON = re.compile(
    r"(?:below|(?:fewer|less) than|at least|from|min(?:imum)?(?: of)?)\s+\S{1,12}"
    r"\s+(?:gpus?|cards?|nodes?|epochs?|steps?|hours?|days?)\s*,?\s*(?:and|but|or)\s*$"
)
# "Until the loss is under 1", "keep GPU hours under 40": limits of other things.
_OTHER_THING = re.compile(
    r"\b(?:loss|perplexity|accuracy|error|score|f1|norm|gradients?|hours?|minutes?|memory|vram|ram|latency|rate"
    r"|rank|length|size|temperature|retries|attempts|tries|tokens)\s+"
    r"(?:(?:is|are|be|go|goes|get|gets|stay|stays|falls?|drops?|should|must|shall|will)\s+)*$"
)
_NOT_A_LIMIT = re.compile(r"(?:no|not)\s*$")


def read(text: Sentence, currency: str) -> Iterator[Proposal]:
    """Propose a budget.

    A price per hour and an amount in another currency are none.
    """
    for found in text.find(_MONEY):
        yield from _with_currency(text, found, currency)
    for pattern in (_KEYED, _TAILED):
        for found in text.find(pattern):
            yield from _budget(found, found["n"], weight=1)
    for found in text.find(_BARE):
        before = text.low[: found.start()]
        if not any(other.search(before) for other in (_AT_LEAST, _GOES_ON, _OTHER_THING)):
            yield from _budget(found, found["n"], weight=0)


def _with_currency(text: Sentence, found: re.Match[str], currency: str) -> Iterator[Proposal]:
    said = found["pre"] or found["post"]
    name = next(name for name, pattern in CURRENCIES.items() if re.fullmatch(pattern, said))
    start, end = found.span()
    limited = found["key"] or found["limit"]
    if found["rate"] or (not limited and _AT_LEAST.search(text.low[:start])):
        yield Proposal(field="", start=start, end=end, weight=4)
    elif currency and name != currency:
        complaint = f"The portal counts in {currency} and converts nothing; give the amount in {currency}."
        yield Proposal(field="budget", start=start, end=end, complaint=complaint, weight=4)
    else:
        yield from _budget(found, found["a"] or found["b"], weight=4)


def _budget(found: re.Match[str], amount: str, *, weight: int) -> Iterator[Proposal]:
    value = number(amount.strip(",.").lstrip("-"), kilo=THOUSAND, whole=True)
    if value is None:
        return
    value = -value if amount.startswith("-") else value
    start, end = found.span()
    if value == float("inf"):
        complaint = "must be an amount above 0, at most 1,000,000,000,000"
        yield Proposal(field="budget", start=start, end=end, complaint=complaint, weight=weight)
    else:
        yield Proposal(field="budget", start=start, end=end, value=plain(value), weight=weight)
