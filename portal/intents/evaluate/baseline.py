"""The baseline: plain regular expressions.

It has no resolution, negation or corrections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from portal.intents.core.types import Setting

_NUMBERS: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "epochs": (r"(\d+(?:\.\d+)?)\s*epochs?", float),
    "max_steps": (r"(\d+)\s*steps", float),
    "lora_r": (r"\b(?:rank|r)\s*=?\s*(\d+)", float),
    "lora_alpha": (r"\balpha\s*=?\s*(\d+)", float),
    "learning_rate": (r"\b(?:lr|learning rate)\s*=?\s*(\d[\d.]*(?:e-?\d+)?)", float),
    "effective_batch_size": (r"\bbatch(?: size)?\s*=?\s*(\d+)", float),
    "tokens_per_sample": (r"\b(?:context|seq(?:uence)?(?: length)?|max length)\s*=?\s*(\d+)\b", float),
    "number_gpus": (r"(\d+)\s*x?\s*(?:gpus?|[ahl]\d+s?)\b", float),
    "number_nodes": (r"(\d+)\s*nodes?", float),
    "budget": (r"(?:€\s*|budget(?: of)?\s*|under\s+)(\d+)|(\d+)\s*(?:€|euros?|eur)\b", float),
}
_WORDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "tuning": ((r"\bqlora\b", "qlora"), (r"\blora\b", "lora"), (r"\bfull\b", "full")),
    "precision": ((r"\bbf16\b", "bfloat16"), (r"\bfp16\b", "float16"), (r"\bfp32\b", "float32")),
    "goal": ((r"\bfast|\basap\b", "fastest"), (r"\bcheap", "cheapest")),
}
_HOURS = re.compile(r"\b(?:in|within)\s+(\d+)\s*(hours?|minutes?|days?)")


def read(text: str, setting: Setting) -> dict[str, dict[str, Any]]:
    """The fields that regular expressions find, in the form of an answer."""
    low = text.lower()
    found: dict[str, Any] = {}
    for name, (pattern, parse) in _NUMBERS.items():
        if match := re.search(pattern, low):
            found[name] = parse(next(group for group in match.groups() if group))
    for name, rules in _WORDS.items():
        if value := next((value for pattern, value in rules if re.search(pattern, low)), None):
            found[name] = value
    if names := [name for name in setting.files if name.lower() in low]:
        found["training_file"] = names[0]
    if models := [name for name in setting.catalogue.models if name.lower() in low]:
        found["model"] = max(models, key=len)
        found["model"] = setting.catalogue.models[found["model"]].model_name
    if gpus := [gpu.gpu_model for gpu in setting.catalogue.every_gpu if gpu.gpu_model.lower() in low]:
        found["gpu_model"] = max(gpus, key=len)
    if within := _HOURS.search(low):
        seconds = int(within[1][:6]) * {"h": 3600, "m": 60, "d": 86_400}[within[2][0]]
        found["deadline_at"] = (setting.now + timedelta(seconds=seconds)).isoformat()
    return {name: {"value": value, "origin": "stated"} for name, value in found.items()}
