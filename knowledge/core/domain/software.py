"""One spelling for the names of training software, however a source writes them."""

from __future__ import annotations

import re
from functools import lru_cache

# The names that formulas ask for; any of `-`, `_`, a space or nothing may join their parts.
NAMES = ("LitGPT", "fms-hf-tuning", "fms-acceleration", "bitsandbytes", "transformers", "peft", "TRL")
PARTS = {"LitGPT": "lit gpt", "bitsandbytes": "bits and bytes"}


def _spelling(name: str) -> re.Pattern[str]:
    parts = re.sub(r"[ -]", "[ _-]?", PARTS.get(name, name))
    return re.compile(rf"(?<![a-z0-9]){parts}(?![a-z])[ =@:_-]*(v?(?=\d))?", re.I)


SPELLINGS = tuple((name, _spelling(name)) for name in NAMES)


@lru_cache(maxsize=1024)
def spelled(software: str) -> str:
    """The text with known names as formulas know them.

    A space stands before each version:

    `lit-gpt==0.5, BitsAndBytes v0.42` is `LitGPT 0.5, bitsandbytes 0.42`.
    """
    for name, spelling in SPELLINGS:
        software = spelling.sub(f"{name} ", software)
    return re.sub(r" +(?=,|$)", "", software)
