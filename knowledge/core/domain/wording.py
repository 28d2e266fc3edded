"""Words for people.

These are counts with their noun, times, amounts of money, and parameters' labels.
"""

from __future__ import annotations

from decimal import Decimal

ACRONYMS = {"lora": "LoRA", "gpu": "GPU", "gpus": "GPUs"}
LABELS = {
    "number_gpus": "Number of GPUs",
    "number_nodes": "Number of nodes",
    "per_device_batch_size": "Batch size per GPU",
    "effective_batch_size": "Effective batch size",
    "lora_r": "LoRA rank",
    "target_modules": "Adapted layers",
    "adam_beta1": "Adam β1",
    "adam_beta2": "Adam β2",
    "lr_schedule": "Rate schedule",
    "warmup_share": "Warm-up",
    "clip_norm": "Gradient clipping",
    "prompt_completion": "Prompt and completion",
}


def counted(count: int, noun: str) -> str:
    """E.g. `1 run`, `1,200 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def rough_time(seconds: float) -> str:
    """E.g. `40 s`, `12 min`, `3 h 45 min`, `3 h`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    hours, minutes = divmod(round(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def money(amount: float, currency: str) -> str:
    """E.g. `1,069 EUR`, `0.42 EUR`; the bare amount without a currency."""
    digits = f"{amount:,.0f}" if abs(amount) >= 100 else f"{Decimal(f'{amount:.3g}'):f}"
    return f"{digits} {currency}" if currency else digits


def label(name: str) -> str:
    """Return a name as a label: `lora_r` becomes `LoRA rank`."""
    if name in LABELS:
        return LABELS[name]
    text = " ".join(ACRONYMS.get(word, word) for word in name.split("_"))
    return text[:1].upper() + text[1:]


def in_sentence(name: str) -> str:
    """Return a name as it stands within a sentence.

    `number_gpus` becomes `number of GPUs`.
    """
    text = label(name)
    return text if text.split()[0] in ACRONYMS.values() else text[:1].lower() + text[1:]
