"""Values as scripts write them, in the form of their field.

They are None where nothing is stated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

UNSTATED = frozenset({"", "null", "none", "~", "auto", "-1", "nan", "???", "undefined", "your_model_here"})
NUMBER = re.compile(r"[+-]?(\d[\d_,]*\.?\d*|\.\d+)([eE][+-]?\d+)?")
WITH_UNIT = re.compile(r"([+-]?\d*\.?\d+)\s*([kKmM])(?:i?b?)?")
TRUE, FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})
BITS = {"4": "bnb-4bit", "8": "bnb-8bit"}
LONGEST_TEXT = 200
LONGEST_KEPT = 2_000  # characters of what a script states
NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")  # no database takes them
PLACEHOLDER = re.compile(r"^<|\n|[\x00-\x1f]|^/?path/to/|(?i:^your[-_ ])")
PRECISIONS = (
    (re.compile(r"bf-?16|bfloat-?16"), "bfloat16"),
    (re.compile(r"(?<!b)(fp-?16|float-?16|\bhalf\b|^16(-|$))"), "float16"),
    (re.compile(r"fp-?32|float-?32|^32(-|$)|^full$|^no$"), "float32"),
)


def number(raw: object, *, thousand: int = 1000) -> float | int | None:
    """The number that is written, or None; `thousand` is what a `k` behind it means."""
    if isinstance(raw, bool) or raw is None:
        return None
    if isinstance(raw, int | float):
        return raw if abs(raw) < 1e15 else None
    text = str(raw).strip().strip("\"'")[:40]
    found = WITH_UNIT.fullmatch(text)
    if found:
        factor = thousand if found[2] in "kK" else thousand**2
        return _whole(float(found[1]) * factor)
    if not NUMBER.fullmatch(text):
        return None
    return _whole(float(text.replace("_", "").replace(",", "")))


def boolean(raw: object) -> bool | None:
    """True or False if that is what is written."""
    if isinstance(raw, bool):
        return raw
    text = str(raw).strip().lower()
    return True if text in TRUE else False if text in FALSE else None


def switched(raw: object) -> bool | None:
    """Whether something is on; some trainers have names for the ways of doing it."""
    return True if str(raw).lower() in {"unsloth", "full", "selective"} else boolean(raw)


def text(raw: object) -> str | None:
    """A short text as it is written, or None."""
    if not isinstance(raw, str):
        return None
    found = raw.strip().strip("\"'")
    usable = found.lower() not in UNSTATED and len(found) <= LONGEST_TEXT
    return found if usable and not PLACEHOLDER.search(found) else None


def can_be_kept(value: object) -> bool:
    """Can a stated value be stored and sent on?

    Not NUL, half a character, infinity or a text of any length: none is a value of a training.
    """
    if isinstance(value, list | tuple):
        return all(map(can_be_kept, value))
    if isinstance(value, str):
        return len(value) <= LONGEST_KEPT and not NO_TEXT.search(value)
    return not isinstance(value, float) or math.isfinite(value)


def length(raw: object) -> int | None:
    return _count(number(raw, thousand=1024))


def count(raw: object) -> int | None:
    return _count(number(raw))


def natural(raw: object) -> int | None:
    """A whole number from 0."""
    found = number(raw)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def positive(raw: object) -> float | int | None:
    found = number(raw)
    return found if found is not None and found > 0 else None


def precision(raw: object) -> str | None:
    """bfloat16, float16 or float32, of the many ways to write them."""
    if isinstance(raw, bool):
        return None
    name = str(raw).strip().lower().rpartition(".")[2] or str(raw).lower()
    return next((known for pattern, known in PRECISIONS if pattern.search(name)), None)


def names(raw: object) -> str | list[str] | None:
    """One text, or the list of several: commas and blanks separate them in a text."""
    one = ",".join(str(item) for item in raw) if isinstance(raw, list | tuple) else text(raw)
    if one is None:
        return None
    parts = [part for found in re.split(r"[,\s]+", one) if (part := text(found.strip(" []'\""))) is not None]
    return parts if len(parts) > 1 else parts[0] if parts else None


def interval(raw: object) -> int | str | None:
    """Steps between two checkpoints, `epoch` or `no`."""
    if isinstance(raw, str) and raw.strip().lower() in {"epoch", "no", "epochs"}:
        return "epoch" if raw.strip().lower().startswith("epoch") else "no"
    if isinstance(raw, str) and (found := re.fullmatch(r"(\d+)\s*(ba|ep)", raw.strip())):
        return int(found[1]) if found[2] == "ba" else "epoch" if found[1] == "1" else None
    return count(raw)


def schedule(raw: object) -> str | None:
    """A schedule's name; the functions that make one are named after it."""
    found = text(raw)
    if found is None:
        return None
    bare = found.rpartition(".")[2]
    made = re.fullmatch(r"get_(\w+?)(_schedule)?(_with_(?:hard_restarts_)?(?:warmup|min_lr)\w*)?", bare)
    if made and ("schedule" in bare):
        return "cosine_with_restarts" if "hard_restarts" in bare else made[1].removesuffix("_schedule")
    return found


def _count(found: float | int | None) -> int | None:
    return int(found) if found is not None and found > 0 and found == int(found) else None


def _whole(found: float) -> float | int:
    return int(found) if found == int(found) and abs(found) < 1e15 else found


CLEAN: dict[str, Callable[[object], Any]] = {
    "task": text,
    "base_model": text,
    "tuning": text,
    "lora_r": count,
    "lora_alpha": positive,
    "target_modules": names,
    "quantization": text,
    "tokens_per_sample": length,
    "per_device_batch_size": count,
    "gradient_accumulation_steps": count,
    "effective_batch_size": count,
    "epochs": positive,
    "max_steps": count,
    "learning_rate": positive,
    "lr_schedule": schedule,
    "warmup": number,
    "weight_decay": number,
    "adam_beta2": positive,
    "clip_norm": positive,
    "optimizer": text,
    "precision": precision,
    "gradient_checkpointing": switched,
    "sharding": text,
    "number_gpus": count,
    "number_nodes": count,
    "gpus_per_node": count,
    "model_parallel": count,
    "gpu_model": text,
    "dataset": names,
    "dataset_rows": count,
    "seed": natural,
    "checkpoint_interval": interval,
}
