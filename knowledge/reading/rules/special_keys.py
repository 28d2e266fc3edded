"""Keys whose value is read in a way of their own.

These are switches, units, and names of many things at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from knowledge.reading.rules.aliases import PLAIN, VAGUE
from knowledge.reading.values import BITS, CLEAN, boolean, number, text
from trainer.recipes import DEFAULT_RECIPE


@dataclass(frozen=True, slots=True)
class Meaning:
    """A field and its value, as plainly as `weight` says."""

    field: str
    value: Any
    weight: int = PLAIN
    unit: str | None = None


Reads = Callable[[Any], Iterator[Meaning]]
SUPERVISED = DEFAULT_RECIPE.tasks[0]  # as other trainers call the task of most files
TUNINGS = {
    "lora": "lora",
    "qlora": "qlora",
    "full": "full",
    SUPERVISED: "full",
    "dora": "dora",
    "freeze": "freeze",
}


def _flag(field: str, value: Any, weight: int = PLAIN) -> Reads:
    """A key that states a value by being true."""

    def stated(raw: Any) -> Iterator[Meaning]:
        if boolean(raw) or str(raw).lower() == "auto":
            yield Meaning(field, value, weight)

    return stated


def _bits(bits: str) -> Reads:
    return _flag("quantization", BITS[bits])


def _quantization_bit(raw: Any) -> Iterator[Meaning]:
    if (bits := str(raw).strip()) in BITS:
        yield Meaning("quantization", BITS[bits])
    elif (width := CLEAN["precision"](raw)) and not bits.isdigit():
        yield Meaning("precision", width, VAGUE)


def _quantize(raw: Any) -> Iterator[Meaning]:
    value = text(raw)
    if value is not None:
        known = "bnb-4bit" if re.search(r"nf4|fp4|^(bnb[-_.]?)?(int)?4(bit)?$", value.lower()) else value
        yield Meaning("quantization", "bnb-8bit" if value.lower() in {"int8", "8bit", "8"} else known)


def _tuning(raw: Any) -> Iterator[Meaning]:
    value = text(raw)
    if value is not None:
        yield Meaning("tuning", TUNINGS.get(value.lower(), value.lower()))


def _train_type(raw: Any) -> Iterator[Meaning]:
    """A tuning where the word is one: other trainers mean a stage by it."""
    value = text(raw)
    if value is not None and value.lower() in TUNINGS:
        yield Meaning("tuning", TUNINGS[value.lower()])


def _use_adapter(raw: Any) -> Iterator[Meaning]:
    used = boolean(raw)
    if used is not None:
        yield Meaning("tuning", "lora" if used else "full", VAGUE)


def _warmup_ratio(raw: Any) -> Iterator[Meaning]:
    value = number(raw)
    if value is not None and value >= 0:
        yield Meaning("warmup", value, PLAIN if value else VAGUE, "ratio")


def _warmup_steps(raw: Any) -> Iterator[Meaning]:
    value = number(str(raw).removesuffix("ba"))
    if value is not None and value >= 0:
        yield Meaning("warmup", value, PLAIN, "ratio" if 0 < value < 1 else "steps")


def _save_strategy(raw: Any) -> Iterator[Meaning]:
    if str(raw).lower() in {"epoch", "no"} or raw is False:
        yield Meaning("checkpoint_interval", "epoch" if str(raw).lower() == "epoch" else "no", PLAIN + 1)


def _stage(near: str, raw: Any) -> Iterator[Meaning]:
    if "zero" in near:
        yield from _zero_stage(raw)
    elif (value := text(raw)) is not None and not value.isdigit():
        yield Meaning("task", {"pt": "pretrain"}.get(value, value))


def _zero_stage(raw: Any) -> Iterator[Meaning]:
    stage = number(raw)
    if stage is not None and 0 <= stage <= 3:
        yield Meaning("sharding", f"zero{stage}")


def _fsdp(raw: Any) -> Iterator[Meaning]:
    if raw is True or (text(raw) is not None and boolean(raw) is not False):
        yield Meaning("sharding", "fsdp")


def _distributed(raw: Any) -> Iterator[Meaning]:
    value = str(raw).lower()
    if "fsdp" in value:
        yield Meaning("sharding", "fsdp")
    elif found := re.search(r"(?:zero|stage)[-_]?([0-3])", value):
        yield Meaning("sharding", f"zero{found[1]}")
    elif value in {"multi_gpu", "ddp", "ddp_find_unused_parameters_true", "ddp_find_unused_parameters_false"}:
        yield Meaning("sharding", "ddp", VAGUE)


def _enabled(near: str, raw: Any) -> Iterator[Meaning]:
    if near in {"fp16", "bf16"} and boolean(raw):
        yield Meaning("precision", "float16" if near == "fp16" else "bfloat16")
    elif near in {"lora", "peft", "qlora", "adapter"}:
        yield from _use_adapter(raw)


def _duration(raw: Any) -> Iterator[Meaning]:
    """`3ep` and `1000ba` of composer."""
    found = re.fullmatch(r"(\d+)\s*(ep|ba)", str(raw).strip())
    if found:
        yield Meaning("epochs" if found[2] == "ep" else "max_steps", int(found[1]))


def _adapted_part(part: str) -> Reads:
    def stated(raw: Any) -> Iterator[Meaning]:
        if boolean(raw):
            yield Meaning("target_modules", [part], VAGUE + 1)

    return stated


def _train_batch_size(raw: Any) -> Iterator[Meaning]:
    """DeepSpeed's and verl's name for the whole batch, others' for that of a device."""
    value = CLEAN["effective_batch_size"](raw)
    if value is not None:
        yield Meaning("train_batch_size", value)


def _visible(raw: Any) -> Iterator[Meaning]:
    ids = [part for part in str(raw).split(",") if part.strip().isdigit()]
    if ids:
        yield Meaning("gpus_per_node", len(ids), VAGUE - 1)


def _deepspeed(raw: Any) -> Iterator[Meaning]:
    """A stage in the name of DeepSpeed's configuration."""
    found = re.search(r"(?:zero|stage|ds_z|_z)[-_]?([0-3])(?!\d)", str(raw).rpartition("/")[2].lower())
    if found:
        yield Meaning("sharding", f"zero{found[1]}", VAGUE)


def _saves(raw: Any) -> Iterator[Meaning]:
    if number(raw) == 1:
        yield Meaning("checkpoint_interval", "epoch", VAGUE)


def _masked(raw: Any) -> Iterator[Meaning]:
    if boolean(raw):
        yield Meaning("task", "masked_lm", VAGUE)


def _split(raw: Any) -> Iterator[Meaning]:
    """The rows of `train[:5000]`."""
    found = re.fullmatch(r"train\[:(\d+)\]", str(raw).strip())
    if found:
        yield Meaning("dataset_rows", int(found[1]))


def _devices(raw: Any) -> Iterator[Meaning]:
    value = len(raw) if isinstance(raw, list) else CLEAN["number_gpus"](raw)
    if value:
        yield Meaning("gpus_per_node", value)


def _backbone(raw: Any) -> Iterator[Meaning]:
    """The width of H2O's stored weights: `int4`, or a precision."""
    yield from _quantization_bit(str(raw).removeprefix("int") if raw in {"int4", "int8"} else raw)


def _gpus(raw: Any) -> Iterator[Meaning]:
    """A number of GPUs, or the list of those that are used."""
    listed = raw if isinstance(raw, list) else str(raw).split(",")
    value = len(listed) if isinstance(raw, list) or len(listed) > 1 else CLEAN["number_gpus"](raw)
    if value:
        yield Meaning("number_gpus", value, VAGUE)


BELOW: dict[str, Callable[[str, Any], Iterator[Meaning]]] = {"stage": _stage, "enabled": _enabled}
SPECIAL: dict[str, Reads] = {
    "bf16": _flag("precision", "bfloat16"),
    "fp16": _flag("precision", "float16"),
    "fp32": _flag("precision", "float32"),
    "bfloat16": _flag("precision", "bfloat16"),
    "load_in_4bit": _bits("4"),
    "load_in_8bit": _bits("8"),
    "use_4bit": _bits("4"),
    "use_8bit": _bits("8"),
    "load_8bit": _bits("8"),
    "load_4bit": _bits("4"),
    "quantization_bit": _quantization_bit,
    "backbone_dtype": _backbone,
    "gpus": _gpus,
    "quant_bits": _quantization_bit,
    "bits": _quantization_bit,
    "quantize": _quantize,
    "quantization": _quantize,
    "tuning": _tuning,
    "method": _tuning,
    "adapter": _tuning,
    "finetuning_type": _tuning,
    "finetuning_method": _tuning,
    "peft_method": _tuning,
    "peft_type": _tuning,
    "train_type": _train_type,
    "sft_type": _tuning,
    "peft_scheme": _tuning,
    "use_peft": _use_adapter,
    "use_lora": _use_adapter,
    "peft": _use_adapter,
    "lora": lambda raw: _use_adapter(raw) if isinstance(raw, bool) or raw == "true" else iter(()),
    "qlora": _flag("tuning", "qlora"),
    "q_lora": _flag("tuning", "qlora"),
    "use_qlora": _flag("tuning", "qlora"),
    "warmup_ratio": _warmup_ratio,
    "lr_warmup_ratio": _warmup_ratio,
    "warmup_fraction": _warmup_ratio,
    "lr_warmup_fraction": _warmup_ratio,
    "warmup_proportion": _warmup_ratio,
    "lr_warmup_steps_ratio": _warmup_ratio,
    "warmup_steps": _warmup_steps,
    "num_warmup_steps": _warmup_steps,
    "lr_warmup_steps": _warmup_steps,
    "warmup_iters": _warmup_steps,
    "lr_warmup_iters": _warmup_steps,
    "warmup_updates": _warmup_steps,
    "t_warmup": _warmup_steps,
    "warmup": _warmup_steps,
    "save_strategy": _save_strategy,
    "zero_stage": _zero_stage,
    "fsdp": _fsdp,
    "use_fsdp": _fsdp,
    "enable_fsdp": _fsdp,
    "distributed_type": _distributed,
    "strategy": _distributed,
    "sharding": lambda raw: iter([Meaning("sharding", raw)]) if text(raw) else iter(()),
    "deepspeed": _deepspeed,
    "saves_per_epoch": _saves,
    "sharding_strategy": lambda raw: (
        iter([Meaning("sharding", "fsdp", VAGUE)]) if "shard" in str(raw).lower() else iter(())
    ),
    "split": _split,
    "max_duration": _duration,
    "mlm": _masked,
    "only_mlm_loss": _masked,
    "train_batch_size": _train_batch_size,
    "cuda_visible_devices": _visible,
    "devices": _devices,
    "lora_target_linear": lambda raw: (
        iter([Meaning("target_modules", "all-linear", VAGUE)]) if boolean(raw) else iter(())
    ),
} | {f"lora_{part}": _adapted_part(part) for part in ("query", "key", "value", "projection", "mlp", "head")}
