"""Words for the tuning, the precision, and how GPUs share the model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

_TUNE = (
    r"(?:fine[\s-]*tun(?:e|es|ed|ing)|finetun(?:e|ed|ing)|ft|tun(?:e|ed|ing)|train(?:ing|ed)?|sft"
    r"|parameters?|params?|weights?|model)"
)
_ADJECTIVE = (
    r"full(?!\s*(?:-|\s)\s*(?:speed|day|night|week|text|data|dataset|set|file|node|nodes|precision"
    r"|epoch|epochs|context|length|time|stop|access|pass|passes|of|list|names?|fp|power|throttle|blast"
    r"|machine|capacity|gpu|gpus|cluster|sequence)\b)"
)

WORDS: tuple[tuple[str, object, str], ...] = (
    ("tuning", "qlora", r"q[\s-]?lora|(?:in\s+|with\s+)?(?:4[\s-]?bits?|four[\s-]bits?)(?:[\s-]+"
     r"(?:lora|adapters?"
        r"|quanti[sz](?:ation|ed)))?|int4|nf4|bnb[\s-]4bit|quanti[sz]ed\s+(?:lora|adapters?)|lora\s+"
        r"(?:on\s+(?:a\s+)?|in\s+|with\s+)?(?:4[\s-]?bits?|four[\s-]bits?)"),
    ("tuning", "lora", r"lo[\s-]?ra(?:[\s-]+(?:adapters?|fine[\s-]?tun(?:e|ing)|tuning))?|(?:low[\s-]rank\s+"
        r")?adapt[eo]rs?(?:[\s-]+(?:tuning|training))?|low[\s-]rank(?:\s+adaptation)?|peft"),
    ("tuning", "full", rf"fully[\s-]+{_TUNE}|full[\s-]+(?:model[\s-]+)?{_TUNE}"
     r"(?:[\s-]+(?:fine[\s-]?)?tun(?:e|ing))?"
        rf"|full[\s-]+(?:rank|blown)\s+{_TUNE}|(?:all|every)\s+(?:of\s+)?(?:the\s+|its\s+)?(?:model\s+"
        rf")?(?:weights?|parameters?|params|layers)|{_TUNE}\s+(?:it\s+)?(?:fully|everything|in full)"
        rf"|(?<![\w-]){_ADJECTIVE}"),
    ("precision", "bfloat16", r"bf[\s-]?16|bfloat[\s-]?16|brain\s+float(?:[\s-]?16)?"),
    ("precision", "float16", r"fp[\s-]?16|float[\s-]?16|f16"
     r"|half[\s-]precision(?!\s*,?\s*\(?\s*b(?:f|float))|16[\s-]bit\s+floats?"),
    ("precision", "float32", r"fp[\s-]?32|float[\s-]?32|f32|"
     r"(?:full|single)[\s-]precision|32[\s-]bit(?:\s+floats?)?"),
    ("quantization", "none", r"unquanti[sz]ed|(?:without|no)\s+(?:any\s+)?quanti[sz]ation"),
    ("sharding", "fsdp", r"fsdp|fully[\s-]sharded(?:[\s-]data[\s-]parallel)?"),
    ("sharding", "ddp", r"ddp|(?:distributed\s+)?data[\s-]parallel(?:ism)?"),
)  # fmt: skip
_COMPILED = tuple((f, v, re.compile(rf"(?<![\w./])(?:{p})(?![\w/])")) for f, v, p in WORDS)
_NO = (
    r"(?:no|without|w/o|disable|skip|avoid|(?:turn|switch)\s+off"
    r"|(?:don'?t|do\s+not|never)\s+(?:use|want|need|do))"
)
_CHECKPOINTING = re.compile(
    rf"(?<!\w)(?P<no>{_NO}\s+)?(?:the\s+)?(?:gradient|activation)[\s_-]*checkpoint(?:ing|s)?"
    r"(?P<off>\s*(?:=|:|is|turned|switched)?\s*(?:off|disabled|false|no)\b)?(?:\s*(?:=|:|turned)?\s*"
    r"(?:on|enabled|true|yes)\b)?"
)


def read(text: Sentence) -> Iterator[Proposal]:
    """Proposals of words that name a value by themselves."""
    for field, value, pattern in _COMPILED:
        for found in text.find(pattern):
            yield Proposal(field=field, start=found.start(), end=found.end(), value=value)
    for found in text.find(_CHECKPOINTING):
        on = not (found["no"] or found["off"])
        yield Proposal(
            field="gradient_checkpointing", start=found.start(), end=found.end(), value=on, weight=4
        )
