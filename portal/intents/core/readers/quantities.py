"""Numbers with a name or a unit.

These are data size, batches, rates, rank, epochs and steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from portal.intents.core.numbers import COUNT, KIBI, NUMBER, POWER, THOUSAND, number, plain
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

_IS = (
    r"(?:\s*(?:=|:|->)\s*|\s+(?:size\s+|length\s+)?(?:of|is|to|at|should be|about|around|equal to"
    r"|equals)\s+(?:about\s+|around\s+|at most\s+|up to\s+)?)"
)
_NEAR = r"\s*[-(]?\s*"
_BEFORE = r"(?<![\w./-])"
_AFTER = r"(?![\w])(?!\.\d)(?!/\d)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """How a parameter is said: `keys` stand before the number, `units` behind it."""

    field: str
    keys: str = ""
    units: str = ""
    whole: bool = True
    kilo: int = THOUSAND
    weight: int = 0


_BATCH = r"batch(?:[\s_-]*sizes?)?"
_DEVICE = r"(?:device|gpu|card|accelerator)"
_PER = rf"(?:per|each|a|every)[\s_-]*{_DEVICE}|(?:on|for)\s+(?:each|every)\s+{_DEVICE}"
_ONE = r"(?:per|for each|for every|each|in a|a)\s+(?:sample|example|row|sequence|record)"

QUANTITIES = (
    Quantity(field="lora_r", keys=r"(?:lora_)?ranks?|lora_r|r", units=r"rank"),
    Quantity(field="lora_alpha", keys=r"(?:lora_)?alpha"),
    Quantity(field="learning_rate", keys=r"(?:peak\s+)?(?:learning[\s_-]*rate|lr)", whole=False,
        units=r"learning[\s_-]*rate|lr"),
    Quantity(
        field="per_device_batch_size",
        keys=rf"(?:{_PER})[\s_-]*(?:train[\s_-]*)?{_BATCH}|(?:micro|local|device|gpu)[\s_-]*(?:{_BATCH}"
            r"|batches)",
        units=rf"(?:samples?|examples?|rows?|sequences?)?\s*(?:{_PER})(?:\s+{_BATCH})?",
        weight=3,
    ),
    Quantity(
        field="effective_batch_size",
        keys=rf"(?:effective|global|total|overall)[\s_-]*(?:train[\s_-]*)?{_BATCH}|{_BATCH}|batches|bs"
            r"|ebs|gbs",
        units=rf"(?:effective|global|total|overall)[\s_-]*{_BATCH}|{_BATCH}(?!\s*(?:size)?\s*\d)"
            r"|(?:samples?|examples?)\s+(?:per|a|each)\s+(?:optimi[sz]er\s+)?step",
    ),
    Quantity(
        field="gradient_accumulation_steps",
        keys=r"grad(?:ient)?s?[\s_-]*acc(?:um(?:ulation|ulate)?)?(?:[\s_-]*steps?)?|accumulat(?:ion|e"
            r"|ing)(?:[\s_-]*steps?)?(?:\s+gradients)?(?:\s+over)?|accum(?:[\s_-]*steps?)?|ga",
        units=r"(?:steps?\s+(?:of\s+)?)?(?:grad(?:ient)?[\s_-]*accumulation(?:[\s_-]*steps?)?"
            r"|accumulation[\s_-]*steps?)|micro[\s_-]*batches",
        weight=3,
    ),
    Quantity(
        field="tokens_per_sample",
        keys=r"(?:max(?:imum)?[\s_.-]*)?(?:seq(?:uence)?s?|context|ctx|input|token|prompt)?[\s_-]*"
            r"(?:len(?:gths?)?|window|size)|(?:max(?:imum)?[\s_-]*)?(?:context|ctx|seq(?:uence)?s?"
            r"|sequence[\s_-]*length|seqlen|tokens(?:[\s_]*per[\s_]*sample)?)|(?:cut[\s-]?off|block"
            r"|truncat(?:e|ed|ion))(?:[\s_-]*(?:len(?:gth)?|size))?",
        units=r"tokens?(?:\s+(?:of\s+)?context|\s+max(?:imum)?|\s+windows?|\s+(?:long|in length)|\s*"
            rf"(?:{_ONE}))?|(?:token[\s-]+)?(?:context|ctx|seq(?:uence)?(?:[\s_-]*len(?:gth)?)?|window)"
            r"(?:[\s_-]*(?:len(?:gth)?|window|size))?",
        kilo=KIBI,
    ),
    Quantity(
        field="epochs",
        keys=r"(?:num(?:ber)?[\s_-]*(?:of[\s_-]*)?(?:train[\s_-]*)?)?epochs?",
        units=r"(?:full\s+|complete\s+|whole\s+|training\s+)?(?:epochs?|eps?|passes|pass(?:\s+over)?"
            r"|rounds|times (?:over|through) (?:the|my|all|our))",
        whole=False,
        weight=1,
    ),
    Quantity(
        field="max_steps",
        keys=r"(?:max(?:imum)?|train(?:ing)?|num(?:ber of)?|total)?[\s_-]*(?:steps|iterations|updates)"
            r"|max[\s_-]*step",
        units=r"(?:train(?:ing)?\s+|optimi[sz]er\s+|gradient\s+|update\s+)?(?:steps?|iterations?|iters?"
            r"|updates)(?!\s*(?:of\s+)?(?:grad|accum))",
        weight=1,
    ),
    # Said of other things, so that their numbers are nobody's.
    Quantity(field="", keys=rf"(?:eval(?:uation)?|valid(?:ation)?|test|inference)[\s_-]*{_BATCH}"
        r"|(?:random\s+)?seed|priority|prio|quota|retries|"
        r"warm[\s_-]*up(?:\s+(?:steps|ratio|for))?"
        r"|dropout|weight[\s_-]*decay|save[\s_-]*(?:every|steps)|log(?:ging)?[\s_-]*(?:every|steps)"
        r"|eval(?:uate)?[\s_-]*(?:every|steps)|every|patience|checkpoint every|momentum|temperature"
        r"|top[_-][pk]|version",
             units=r"(?:retries|retry|warm[\s-]*up(?:\s+steps)?|times|tries|attempts|gb|gib|tb|mb|vram|%"
                 r"|percent|rows|lines|examples|samples|essays|people|colleagues|users|documents|pages"
                 r"|years|months|seconds|secs?|s|am|pm|layers|heads|experts)", whole=False, weight=1),
)  # fmt: skip
_PAIRS = (
    re.compile(r"(?<!\w)(?:rank|r)\s*/\s*alpha\s*(?:=|:|of)?\s*(?P<r>\d{1,4})\s*/\s*(?P<a>\d{1,4})(?![\w.])"),
    re.compile(r"(?<!\w)r\s?(?P<r>\d{1,4})\s*[,/]?\s*a\s?(?P<a>\d{1,4})(?![\w.])"),
)
_BATCH_EACH = re.compile(
    rf"(?<![\w.]){_BATCH}(?:{_IS}|{_NEAR})(?P<n>{COUNT})\s*(?:samples?|examples?|rows?)?\s*(?:{_PER})(?!\w)"
)
_EVERY = re.compile(r"(?:every|each|warm[\s-]?up(?: of| for)?|save|log|evaluate|eval)\s*$")
# Facts about texts and training as a whole, or what answers should be: "rows of about 300 tokens",
# "answers in at most 3 steps", "train for a million tokens".
_ABOUT = r"(?:(?:about|around|roughly|up\s+to|at\s+most|at\s+least|exactly|some|only)\s+|~\s*)*"
_FACT = re.compile(
    r"(?:\b(?:rows?|answers?|repl(?:y|ies)|responses?|questions?|samples?|examples?|documents?|texts?|chats?"
    r"|dialog(?:ue)?s?|messages?|e?mails?|prompts?|essays?|letters?|files?|data(?:set)?|they|it|which|that|each)\s+"
    r"(?:each\s+|usually\s+|often\s+)?(?:of|have|has|with|are|is|contains?|average|holds?)"
    r"|\b(?:answer|reply|respond|reason|think|solve|explain)(?:s|ing)?\s+(?:\w+\s+){0,3}?(?:in|with|within|using)"
    rf")\s+{_ABOUT}$"
)
_TRAINED_FOR = re.compile(rf"\btrain(?:ed|ing)?\s+(?:it\s+)?(?:for|over)\s+{_ABOUT}$")
_FACTS = {"tokens_per_sample": (_FACT, _TRAINED_FOR), "max_steps": (_FACT,)}
_OPEN_BOUND = re.compile(
    r"(?<!no )(?<!not )(?<!n't )(?:more\s+than|over|above|(?:fewer|less)\s+than"
    r"|at\s+least|min(?:imum)?(?:\s+of)?|vocabulary\s+of)\s*$"
)
_RANGE = re.compile(rf"{_BEFORE}(?:between\s+)?({COUNT})\s*(?:-|to|or|and|/)\s*$")
_HALF = re.compile(r"(?<![\w./])(?:(?P<n>one|a|two|three|\d)\s+(?:and\s+a\s+half|1/2)\s+epochs?|"
    r"(?:half\s+(?:an?|of an)\s+"
    r"|1/2\s+"
    r"(?:(?:of\s+)?an?\s+)?|half\s+)epochs?)\b")  # fmt: skip
_ONE_EPOCH = re.compile(
    r"(?<!\w)(?<!/\d of )(?:an?|one|a\s+single|single|just\s+one)\s+(?:(?:full|single)\s+)?(?:epoch|pass\s+"
    r"(?:over|through))\b"
)
_BARE_RATE = re.compile(r"(?<![\w.,=/+-])(?P<n>\d(?:\.\d+)?e-0?[3-7])(?![\w.-])")
LEAST_EPOCHS = 0.01  # a smaller number is a rate
_GLUED_RANKS = frozenset({4, 8, 16, 32, 64, 128, 256})


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[Quantity, re.Pattern[str] | None, re.Pattern[str] | None], ...]:
    compiled = []
    for q in QUANTITIES:
        value = rf"(?:{POWER}|{NUMBER})" if q.field == "learning_rate" else NUMBER
        key = rf"(?<![\w.])(?:{q.keys})(?P<is>{_IS}|{_NEAR})(?P<n>{value}){_AFTER}" if q.keys else None
        unit = rf"(?<![\w.,/=])(?P<n>{value})[\s-]*(?:{q.units})(?![\w-])" if q.units else None
        compiled.append((q, re.compile(key) if key else None, re.compile(unit) if unit else None))
    return tuple(compiled)


def read(text: Sentence) -> Iterator[Proposal]:
    """Propose all quantities.

    A number in a range is nobody's, as it determines nothing.
    """
    for q, key, unit in _patterns():
        for found in text.find(key) if key else ():
            if proposal := _proposal(q, found, text, keyed=True):
                yield proposal
        for found in text.find(unit) if unit else ():
            if proposal := _proposal(q, found, text, keyed=False):
                yield proposal
    for found in (found for pair in _PAIRS for found in text.find(pair)):
        yield _said("lora_r", found, int(found["r"]), end=found.end("r"), weight=8)
        yield _said("lora_alpha", found, int(found["a"]), start=found.start("a"), weight=8)
    for found in text.find(_BATCH_EACH):
        if (each := number(found["n"], whole=True)) is not None:
            yield _said("per_device_batch_size", found, each, weight=6)
    for found in text.find(_HALF):
        whole = number(found["n"]) if found["n"] not in (None, "a") else float(found["n"] == "a")
        yield _said("epochs", found, (whole or 0) + 0.5, weight=6)
    for found in text.find(_BARE_RATE):
        if (rate := number(found["n"])) is not None:
            one = _said("learning_rate", found, rate, weight=-2)
            yield replace(one, value=rate, weak=True)
    for found in text.find(_ONE_EPOCH):
        yield _said("epochs", found, 1, weight=4)


def _said(
    field: str, found: re.Match[str], value: float, *, start: int = -1, end: int = -1, weight: int = 0
) -> Proposal:
    start, end = found.start() if start < 0 else start, found.end() if end < 0 else end
    return Proposal(field=field, start=start, end=end, value=plain(value), weight=weight)


def _proposal(q: Quantity, found: re.Match[str], text: Sentence, *, keyed: bool) -> Proposal | None:
    value = number(found["n"], kilo=q.kilo, whole=q.whole)
    if value is None or value == float("inf"):
        return None
    glued = keyed and not found["is"]
    if q.field == "lora_r" and glued and (value not in _GLUED_RANKS or found.group().startswith("rank ")):
        return None
    if q.field == "learning_rate" and not keyed and value >= 1:
        return None
    if q.field == "epochs" and 0 < value < LEAST_EPOCHS:  # "two epochs at 1e-5"
        return None
    if q.field == "tokens_per_sample" and keyed and found.group().lstrip("-_ .").startswith("size"):
        return None
    field = q.field
    before = text.low[: found.start("n")]
    if not keyed:
        if any(other.search(before) for other in (_EVERY, _OPEN_BOUND, *_FACTS.get(field, ()))):
            field = ""
        elif low := _RANGE.search(before):
            return Proposal(field="", start=low.start(), end=found.end(), weight=8)
    start = found.start() if keyed else found.start("n")
    said = bool(keyed and found["is"].strip())
    weight = q.weight + (2 if said else 0)
    shown: float | int = plain(value)
    return Proposal(field=field, start=start, end=found.end(), value=shown, weight=weight)
