"""LLMFineTuningBench (IBM Research, Apache-2.0): batch and tokens/s are of all GPUs together."""

from __future__ import annotations

import re

from knowledge.core.rows import Row
from knowledge.core.sources.table import Cells, read
from knowledge.core.types import Config

REQUIRED = (
    "model_name",
    "method",
    "gpu_model",
    "number_gpus",
    "tokens_per_sample",
    "batch_size",
    "is_valid",
    "dataset_tokens_per_second",
)
TOO_FAST = "this protocol's Mistral rows are about four times faster than the same runs elsewhere"
METHODS = ("full", "lora", "gptq-lora", "qlora", "prompt-tuning")


def parse(text: str) -> list[Row]:
    """The rows of runs.csv."""
    return read(text, REQUIRED, _row)


def _row(cells: Cells) -> Row:
    valid = cells.flag("is_valid")
    origin = cells.text("origin") or ""
    protocol = cells.text("run_protocol")
    batch, memory = cells.count("batch_size"), cells.number("gpu_memory_utilization_peak", 0, 100.5)
    config = _config(cells, batch, protocol)
    too_fast = protocol == "full_run_16384_samples" and "Mistral-7B" in config.model_name
    whole = valid and (protocol or "").startswith("full_run")
    return Row(
        config=config,
        status="ok" if valid else "failed",
        source="lfb",
        origin=origin,
        effective_batch_size=batch * config.gradient_accumulation_steps,
        tokens_per_second=cells.number("dataset_tokens_per_second", 1e-6),
        runtime_s=cells.number("train_runtime", 1e-3) if whole else None,
        peak_memory_fraction=None if memory is None else min(1.0, memory / 100),
        learn=not too_fast,
        learn_validity=bool(re.fullmatch(r"page:\d+", origin)),
        flag_reason=TOO_FAST if too_fast else "",
    )


def _config(cells: Cells, batch: int, protocol: str | None) -> Config:
    gpus, nodes = cells.count("number_gpus"), cells.whole("number_nodes", 1) or 1
    method = cells.choice("method", METHODS) or "full"
    return Config(
        model_name=cells.model("model_name"),
        method=method,
        gpu_model=cells.gpu("gpu_model"),
        number_gpus=gpus,
        number_nodes=nodes,
        tokens_per_sample=cells.count("tokens_per_sample"),
        per_device_batch_size=batch // gpus if batch % gpus == 0 else 0,
        gradient_accumulation_steps=cells.whole("gradient_accumulation_steps", 1) or 1,
        precision=cells.text("torch_dtype"),
        quantization="gptq-4bit" if method == "gptq-lora" else "none",
        flash_attention=True,
        gradient_checkpointing=True,
        fast_kernels=cells.flag("fast_kernels"),
        padding_free=False,
        expert_parallel=cells.whole("fast_moe"),
        sharding="fsdp" if gpus > 1 else "none",
        network="none" if nodes == 1 else ("roce" if cells.flag("enable_roce") else "tcp"),
        software=cells.text("fms_hf_tuning_version"),
        run_protocol=protocol,
    )
