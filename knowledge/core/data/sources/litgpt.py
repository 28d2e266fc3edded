"""LitGPT's fine-tuning table (Apache-2.0): memory and validity, no throughput.

The table names the file of each configuration (`config_hub/finetune`), and those state where adapters are,
their rank, the samples of a step and the GPUs; LitGPT's code states the rest. The table's 4 GPUs are those of
the machine: of adapters all files use one, so such rows repeat others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from knowledge.core.analytic import cost_model, stack
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources.small import small_config
from knowledge.core.data.sources.table import Cells, read
from knowledge.core.domain import adapted_layers
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

REQUIRED = ("model_name", "method", "gpu_model", "train_runtime_min", "peak_memory_gb", "is_valid")
SHARED = "the source calls all its runs single-GPU ones, and its files and table share this model"
OF_ADAPTERS = (
    "the peak is below that of weights, gradients and AdamW's states: it is that of adapters, which "
    "`litgpt finetune` trains where nothing else is asked for"
)
BITSANDBYTES = "bitsandbytes 0.42.0"  # the only one that LitGPT took until the end of 2024


@dataclass(frozen=True, slots=True)
class AdapterFiles:
    """The adapters that the files of a folder state.

    placed: where they are. rank, quantized_rank: on weights in 16 and in 4 bits. samples: of a step.
    """

    placed: str
    rank: int
    quantized_rank: int
    samples: int


FEW = AdapterFiles(adapted_layers.QUERY_VALUE, 32, 32, 8)
FOLDERS = {
    **dict.fromkeys(("falcon-7b", "llama-2-7b", "llama-3-8b", "llama-3.1-8b", "llama-3.2-1b"), FEW),
    **dict.fromkeys(("llama-3.2-3b", "mistral-7b", "mistral-7b-v0.2", "stablelm-base-alpha-3b"), FEW),
    **dict.fromkeys(("gemma-2b", "gemma2-2b", "gemma2b"), AdapterFiles(adapted_layers.ALL_LINEAR, 8, 16, 6)),
    **dict.fromkeys(("gemma-7b", "gemma2-9b"), AdapterFiles(adapted_layers.ALL_LINEAR, 16, 16, 6)),
    **dict.fromkeys(("phi-2", "phi-3"), AdapterFiles(adapted_layers.ALL_LINEAR, 8, 8, 8)),
    "tiny-llama": AdapterFiles(adapted_layers.ALL_LINEAR, 32, 32, 8),
}
FULL_SAMPLES = {"tiny-llama": 32, "gemma-2b": 16, "phi-2": 8, "phi-3": 8, "stablelm-base-alpha-3b": 8}
USUAL_FULL_SAMPLES = 64
# GPUs that share a model of which all weights learn, where they are not the machine's.
FULL_GPUS = {"tiny-llama": 1, "phi-2": 2, "stablelm-base-alpha-3b": 2}
# Configurations whose file names another model than the table.
MODELS = {"gemma2-2b": "gemma-2-2b", "gemma2b": "gemma-2-2b"}
CAPPED = "gemma2"  # models whose scores pass through a tanh: no fused attention computes it
STATES = 8.0  # bytes of a weight with its gradient and AdamW's states, all in 16 bits


def parse(text: str, catalogue: Catalogue) -> list[Measurement]:
    """The rows of finetune_table.csv."""
    return read(text, REQUIRED, _row, catalogue)


def _row(cells: Cells) -> Measurement:
    config = _config(cells)
    memory, alone = cells.number("peak_memory_gb", 0), config.number_gpus == 1
    reason = "" if alone else SHARED
    if alone and config.tuning == "full" and memory and memory * 1e9 < _states(cells.catalogue, config):
        reason = OF_ADAPTERS
    return Measurement(
        config=config,
        status="ok" if cells.answer("is_valid") else "oom",
        source="litgpt",
        origin=cells.text("config") or "",
        peak_memory_fraction=None if memory is None else _share(memory * 1e9, cells.catalogue, config),
        learn=not reason,
        learn_validity=reason != OF_ADAPTERS,
        flag_reason=reason,
    )


def _share(allocated: float, catalogue: Catalogue, config: Config) -> float:
    """Return the share of a GPU's memory that the process held.

    LitGPT tells what PyTorch allocated (`max_memory_allocated`); a CUDA context comes on top.
    """
    capacity = catalogue.gpu(config.gpu_model).memory_bytes
    context = cost_model.CONTEXT_BYTES + cost_model.CONTEXT_SHARE * capacity
    return min(1.0, (allocated + context) / capacity)


def _states(catalogue: Catalogue, config: Config) -> float:
    """Bytes of weights, gradients and AdamW's states, with a head of its own."""
    model = catalogue.model(config.model_name)
    head = model.vocab * model.hidden if model.tied_embeddings else 0
    return STATES * (model.parameters + head)


def _config(cells: Cells) -> Config:
    length, batch = cells.count("tokens_per_sample"), cells.count("per_device_batch_size")
    stated = small_config(cells, length, batch)
    name = (cells.text("config") or "").partition("/")[0].lower()
    gpus, quantized = _gpus(name, stated), stated.tuning == "qlora"
    config = replace(
        stated,
        model_name=cells.catalogue.model(MODELS[name]).model_name if name in MODELS else stated.model_name,
        number_gpus=gpus,
        sharding="fsdp" if gpus > 1 else "none",
        optimizer_state=stack.PAGED if quantized else "adamw-bf16",
        unquantized_float32=False if quantized else None,
        flash_attention=not name.startswith(CAPPED),
        gradient_checkpointing=gpus > 1,  # layers are computed again only where it shards
        software=f"{stack.LITGPT} {BITSANDBYTES}" if quantized else stack.LITGPT,
    )
    return _as_file(config, name)


def _as_file(config: Config, name: str) -> Config:
    """Return the configuration with what its file states, if that is known."""
    folder, at_once = FOLDERS.get(name), config.per_device_batch_size * config.number_gpus
    if folder is None:
        return config
    if config.tuning == "full":
        samples = FULL_SAMPLES.get(name, USUAL_FULL_SAMPLES)
        return replace(config, gradient_accumulation_steps=max(1, samples // at_once))
    return replace(
        config,
        gradient_accumulation_steps=max(1, folder.samples // at_once),
        lora_r=folder.quantized_rank if config.tuning == "qlora" else folder.rank,
        target_modules=folder.placed,
    )


def _gpus(name: str, config: Config) -> int:
    """GPUs that train one model."""
    if name not in FOLDERS:
        return config.number_gpus
    return 1 if config.tuning != "full" else FULL_GPUS.get(name, config.number_gpus)
