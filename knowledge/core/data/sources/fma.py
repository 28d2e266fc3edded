"""The benchmark history of fms-acceleration (Apache-2.0).

Batch and tokens/s are per GPU, memory is in MiB.
"""

from __future__ import annotations

import re

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources.table import Cells, read
from knowledge.core.domain import adapted_layers
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

REQUIRED = (
    "gpu_model",
    "framework_config",
    "model_name_or_path",
    "num_gpus",
    "per_device_train_batch_size",
    "is_valid",
    "train_tokens_per_second",
)
MIB = 2**20
LIMIT, SHORT_TOKENS = 4096, 512.0
LIGER_FAMILIES = frozenset({"granite", "llama", "mistral"})


def parse(text: str, catalogue: Catalogue) -> list[Measurement]:
    """The rows of runs.csv."""
    return read(text, REQUIRED, _row, catalogue)


def _row(cells: Cells) -> Measurement:
    valid, config = cells.answer("is_valid"), _config(cells)
    per_gpu = cells.number("train_tokens_per_second", 1e-6)
    reserved = cells.number("mem_nvidia_mem_reserved", 0)
    capacity = cells.catalogue.gpu(config.gpu_model).memory_bytes
    fraction = None if reserved is None else min(1.0, reserved * MIB / capacity)
    full = fraction is not None and fraction > 0.95
    return Measurement(
        config=config,
        status="ok" if valid else ("oom" if full else "failed"),
        source="fma",
        origin=f"{cells.text('source_file')}@{cells.text('snapshot_date')}",
        tokens_per_second=None if per_gpu is None else per_gpu * config.number_gpus,
        peak_memory_fraction=fraction if valid else None,
        padded_tokens=cells.number("tokens_per_sample_derived", 1) if valid else _usual_length(cells),
    )


def _config(cells: Cells) -> Config:
    kernels = cells.text("framework_config") or "none"
    gpus = cells.count("num_gpus")
    tuning = _tuning(kernels, cells.text("peft_method"))
    degree = re.search(r"ep(\d+)", kernels)
    return Config(
        model_name=cells.model("model_name_or_path"),
        tuning=tuning,
        gpu_model=cells.gpu("gpu_model"),
        number_gpus=gpus,
        tokens_per_sample=2048 if "santacoder" in cells.need("model_name_or_path") else LIMIT,
        per_device_batch_size=cells.count("per_device_train_batch_size"),
        gradient_accumulation_steps=cells.whole("gradient_accumulation_steps", 1) or _accumulation(cells),
        precision=_precision(cells),
        quantization={"qlora": "bnb-4bit", "gptq-lora": "gptq-4bit"}.get(tuning, "none"),
        lora_r=cells.whole("r", 1),
        lora_alpha=cells.whole("lora_alpha", 1),
        target_modules=adapted_layers.placement(cells.text("target_modules") or ""),
        optimizer_state=_optimizer(cells, tuning, gpus),
        unquantized_float32=kernels == "baseline-peft-bnb" and gpus == 1 if tuning == "qlora" else None,
        flash_attention=True,
        gradient_checkpointing=True,
        fast_kernels="foak" in kernels,
        padding_free="padding-free" in kernels,
        chunked_loss=True if "liger" in kernels and _has_liger_loss(cells) else None,
        expert_parallel=int(degree.group(1)) if degree else 0,
        sharding="fsdp" if gpus > 1 else "none",
        network="none",
        software=f"fms-acceleration {cells.text('snapshot_date')}",
        run_protocol=kernels,
    )


def _optimizer(cells: Cells, tuning: str, gpus: int) -> str | None:
    """Return which states the optimiser keeps of all weights.

    The source's configuration of Accelerate has no mixed precision (`scripts/benchmarks/accelerate.yaml`), so
    states are as wide as the weights; where a run asks for it, Accelerate makes float32 of what FSDP shards.
    """
    if tuning != "full" or _precision(cells) not in ("bfloat16", "float16"):
        return None
    mixed = cells.flag("bf16") or cells.flag("fp16")
    return "adamw-fp32" if mixed and gpus > 1 else "adamw-bf16"


def _precision(cells: Cells) -> str:
    """The width that weights are loaded in.

    Where no column says it, and nobody asks for fp16, it is fms-hf-tuning's default (its `ModelArguments`).
    """
    return cells.text("torch_dtype") or ("float16" if cells.flag("fp16") else "bfloat16")


def _has_liger_loss(cells: Cells) -> bool:
    """Whether the kernels have a loss in chunks for the model's family.

    Their rules (`fms_acceleration_foak/models`) name it `fused-lce`.
    """
    model = cells.catalogue.known_model(cells.model("model_name_or_path"))
    return model is not None and model.architecture in LIGER_FAMILIES


def _accumulation(cells: Cells) -> int:
    """Micro-steps of a step: two in one family of files (`scenarios-orca.yaml`)."""
    return 2 if "refs_orca" in (cells.text("source_file") or "") else 1


def _usual_length(cells: Cells) -> float | None:
    """Failed rows state no length: it follows from the family of files they come from."""
    return SHORT_TOKENS if _is_short(cells) else None


def _is_short(cells: Cells) -> bool:
    """Whether the samples are far shorter than the limit."""
    source = cells.text("source_file") or ""
    return "santacoder" not in cells.need("model_name_or_path") and ("orca" in source or "moe" in source)


def _tuning(kernels: str, peft: str | None) -> str:
    if "autogptq" in kernels:
        return "gptq-lora"
    if "bnb" in kernels:
        return "qlora"
    return "lora" if peft == "lora" else "full"
