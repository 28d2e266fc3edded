"""LLMFineTuningBench (IBM Research, Apache-2.0).

Batch and tokens/s are of all GPUs together.

The data come in two shapes: the sample with `origin` and `run_protocol`, and the complete data
set of the hub, which states protocol, version and some settings only inside `identifier` and
`experiment_id`.
"""

from __future__ import annotations

import re

from knowledge.core.analytic.stack import HYBRID, PAGED
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources.table import Cells, read
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

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
NETWORKS = {True: "roce", False: "tcp", None: None}
TUNINGS = ("full", "lora", "gptq-lora", "qlora", "prompt-tuning")
PAGED_VERSION, USUAL_ACCUMULATION = "2.7.1", 4
HALF, IN_16_BITS = ("bfloat16", "float16"), "adamw-bf16"


def parse(text: str, catalogue: Catalogue) -> list[Measurement]:
    """The rows of runs.csv."""
    return read(text, REQUIRED, _row, catalogue)


def _row(cells: Cells) -> Measurement:
    valid = cells.answer("is_valid")
    complete = cells.text("experiment_id") is not None
    origin = "hub" if complete else cells.text("origin") or ""
    protocol = _protocol(cells)
    batch, memory = cells.count("batch_size"), cells.number("gpu_memory_utilization_peak", 0, 100.5)
    config = _config(cells, batch, protocol)
    too_fast = protocol == "full_run_16384_samples" and "Mistral-7B" in config.model_name
    whole = valid and (protocol or "").startswith("full_run")
    return Measurement(
        config=config,
        status="ok" if valid else "failed",
        source="lfb",
        origin=origin,
        effective_batch_size=batch * config.gradient_accumulation_steps,
        tokens_per_second=cells.number("dataset_tokens_per_second", 1e-6),
        runtime_s=cells.number("train_runtime", 1e-3) if whole else None,
        peak_memory_fraction=None if memory is None else _of_programs(memory / 100, cells, config),
        learn=not too_fast,
        learn_validity=complete or bool(re.fullmatch(r"page:\d+", origin)),
        flag_reason=TOO_FAST if too_fast else "",
    )


def _of_programs(share: float, cells: Cells, config: Config) -> float:
    """Return the share of a GPU's memory that programs held.

    The source's shares reach 99.99 % of a GPU of which programs get 99 %: they count what the driver keeps,
    as NVML's first `nvmlDeviceGetMemoryInfo` does. A full GPU stays full.
    """
    sheet = cells.catalogue.gpu(config.gpu_model)
    programs = (sheet.usable_bytes or sheet.memory_bytes) / sheet.memory_bytes
    return 1.0 if share >= programs else round(max(0.0, share - (1 - programs)), 6)


def _config(cells: Cells, batch: int, protocol: str | None) -> Config:
    gpus, nodes = cells.count("number_gpus"), cells.whole("number_nodes", 1) or 1
    tuning = cells.one_of("method", TUNINGS)
    return Config(
        model_name=cells.model("model_name"),
        tuning=tuning,
        gpu_model=cells.gpu("gpu_model"),
        number_gpus=gpus,
        number_nodes=nodes,
        tokens_per_sample=cells.count("tokens_per_sample"),
        per_device_batch_size=batch // gpus if batch % gpus == 0 else 0,
        gradient_accumulation_steps=_accumulation(cells),
        precision=cells.text("torch_dtype"),
        quantization="gptq-4bit" if tuning == "gptq-lora" else "none",
        flash_attention=True,
        gradient_checkpointing=True,
        reentrant_checkpointing=_reentrant(cells),
        fast_kernels=_fast_kernels(cells),
        optimizer_state=_optimizer(cells, tuning),
        padding_free=False,
        expert_parallel=cells.whole("fast_moe"),
        sharding=_sharding(cells, gpus, nodes),
        network="none" if nodes == 1 else NETWORKS[cells.flag("enable_roce")],
        software=_version(cells),
        run_protocol=protocol,
    )


def _inside(cells: Cells, name: str, value: str = r"\d+(?:\.\d+)*") -> str | None:
    """Return the value stated as `name.value` in one of the two identifiers.

    Only the complete data set states values in this way.
    """
    text = f"{cells.text('identifier') or ''}-{cells.text('experiment_id') or ''}"
    found = re.search(rf"-{name}\.({value})", text)
    return found[1] if found else None


def _protocol(cells: Cells) -> str | None:
    """Return the protocol, which says how long a run was measured.

    The sample states it; for the complete data set it follows from the experiment.
    """
    experiment = cells.text("experiment_id")
    if experiment is None:
        return cells.text("run_protocol")
    if "auto_stop" in experiment:
        return "auto_stop"
    seconds = _inside(cells, "stop_after_seconds")
    if seconds:
        return f"stop_after_{float(seconds):.0f}s"
    whole = "entries-16384" in f"{cells.text('identifier')}"
    return "full_run_16384_samples" if whole else "full_run"


def _accumulation(cells: Cells) -> int:
    """Return the micro-steps of a step.

    The source's actuator takes 4 where nothing is said (IBM/ado, `gradient_accumulation_steps` in
    `experiments/common.py`), and all silent runs that tell their steps did a multiple of 4, but for those of
    one version, whose others state 1.
    """
    stated = _inside(cells, "gradient_accumulation_steps")
    if stated:
        return max(1, int(float(stated)))
    usual = 1 if _version(cells) == PAGED_VERSION else USUAL_ACCUMULATION
    return cells.whole("gradient_accumulation_steps", 1) or usual


def _version(cells: Cells) -> str | None:
    return _inside(cells, "fms_hf_tuning_version") or cells.text("fms_hf_tuning_version")


def _sharding(cells: Cells, gpus: int, nodes: int) -> str:
    """The data set does not state it; peaks and rates of one campaign tell.

    Its runs on 16 and 32 GPUs need the memory of 8, and are as fast with TCP as with RDMA.
    """
    older = _version(cells) in (None, "2.4.0") and not _is_paged(cells) and _reentrant(cells) is None
    if nodes > 1 and gpus == 8 * nodes and older:
        return HYBRID
    return "fsdp" if gpus > 1 else "none"


def _is_paged(cells: Cells) -> bool:
    """Whether optimiser states move to the host where memory is short.

    All runs of one version that state it had the paged optimiser, so its silent runs count as
    paged.
    """
    stated = cells.text("optim") or _inside(cells, "optim", r"\w+")
    return stated == "paged_adamw_32bit" or (stated is None and _version(cells) == PAGED_VERSION)


def _optimizer(cells: Cells, tuning: str) -> str | None:
    """Return which states the optimiser keeps.

    Elsewhere the actuator takes `adamw_torch` without mixed precision (IBM/ado, `optim` and
    `accelerate_config_mixed_precision` in `experiments/common.py`): its states are as wide as the weights,
    16 bits. Which width adapters have is peft's choice, and left open, and so is the optimiser of copies that
    leave out the software's version.
    """
    if _is_paged(cells):
        return PAGED
    stated = tuning == "full" and _version(cells) is not None
    return IN_16_BITS if stated and cells.text("torch_dtype") in HALF else None


def _reentrant(cells: Cells) -> bool | None:
    stated = _inside(cells, "gradient_checkpointing_use_reentrant", r"\w+")
    return stated.lower() in ("true", "1") if stated else cells.flag("gc_use_reentrant")


def _fast_kernels(cells: Cells) -> bool | None:
    """Return whether fast kernels are used.

    The complete data set lists the kernels in use, and leaves the cell empty where none is.
    """
    if cells.text("experiment_id") is None:
        return cells.flag("fast_kernels")
    return "true" in (cells.text("fast_kernels") or "").lower()
