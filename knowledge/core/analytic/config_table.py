"""Configurations as columns: facts of model and GPU joined on, ready for arithmetic over many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from knowledge.core.domain import adapted_layers, catalogue, config_space
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Config, Inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One GPU model as it is in this cluster: memory of a GPU in bytes, FLOP/s and bytes/s."""

    memory_bytes: float
    bandwidth_bytes_s: float
    peak_flops: float | None = None  # measured; None: the data sheet's figure for the precision


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigTable:
    """n configurations; every field has shape (n,). Bytes, FLOP/s, tokens; NaN is unknown."""

    # configuration
    gpus: Array
    nodes: Array
    tokens: Array  # limit of a sample
    padded: Array  # a sample as it is processed, cut and padded; the limit where nothing better is known
    batch: Array  # per device
    accumulation: Array
    lora_r: Array
    expert_parallel: Array
    model_parallel: Array  # GPUs that share a sample, 1 where each has its own
    adapter: Mask
    quantized: Mask
    checkpointing: Mask
    fsdp: Mask
    hybrid: Mask  # shards within a node, whole copies between nodes
    float32: Mask
    fused: Mask  # with fused kernels; unknown counts as without
    reentrant: Mask  # the older variant of checkpointing, quicker to start; unknown counts as the other
    chunked: Mask  # logits of some positions at a time; unknown counts as all at once
    paged: Mask  # optimiser states that move to the host where memory is short
    silent: Mask  # which states the optimiser keeps is unknown
    state_bytes: Array  # per trained parameter: weight, gradient, optimiser
    network_bytes_s: Array
    # model
    layers: Array
    hidden: Array
    queries: Array
    keys: Array
    mlp: Array
    mlp_matrices: Array
    vocab: Array
    parameters: Array
    active_parameters: Array
    matmul: Array
    blocks: Array
    experts: Array
    expert_width: Array
    attention_layers: Array
    adapted: Array  # inputs and outputs of the layers that LoRA adapts
    towers: Array  # weights that text does not reach: held, never trained
    # GPU
    cpu: Mask
    peak: Array
    reach: Array  # what its matrix products reach of the peak, as a share of what NVIDIA's do
    bandwidth: Array
    memory: Array
    link_bytes_s: Array
    rack: Array  # GPUs that such links join beyond the node; 0 where they end with it

    def __len__(self) -> int:
        return len(self.gpus)

    def take(self, rows: NDArray[np.intp] | Mask) -> ConfigTable:
        """The chosen rows."""
        return ConfigTable(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @property
    def micro_tokens(self) -> Array:
        """Tokens a GPU handles in a usual micro-step (`T`)."""
        return self.batch * self.padded / self.model_parallel

    @property
    def peak_tokens(self) -> Array:
        """Tokens a GPU holds in the longest micro-step: what memory must bear."""
        return self.batch * self.tokens / self.model_parallel

    @property
    def shards(self) -> Array:
        """GPUs that share one copy of the weights."""
        fsdp = np.where(self.hybrid, self.gpus / self.nodes, self.gpus)
        return np.where(self.fsdp, fsdp, self.model_parallel)

    @property
    def lora_parameters(self) -> Array:
        """Adapter weights; 0 for full fine-tuning."""
        return np.where(self.adapter, self.lora_r * self.adapted, 0.0)


PAGED = "paged-adamw-fp32"
HYBRID = "hybrid"
# Optimiser states in bytes per trained parameter (weights, gradients, moments): ZeRO, table of section 3.
STATE_BYTES = {"adamw-fp32": 16.0, "adamw-bf16": 8.0, "adamw-8bit": 6.0, PAGED: 16.0}


@dataclass(frozen=True, slots=True)
class Link:
    """How GPUs of a node are joined. bytes_s: of one GPU, each way, on the data sheet.

    usable: the share of it that a ring's bus bandwidth reaches.
    """

    bytes_s: float
    usable: float


LINKS = {
    "nvlink2": Link(150e9, 0.767),
    "nvlink3": Link(300e9, 0.767),
    "nvlink4": Link(450e9, 0.822),
    "nvlink5": Link(900e9, 0.822),
    "nvlink5-rack": Link(900e9, 0.822),
    "xgmi": Link(448e9, 0.513),
    "roce": Link(300e9, 0.5),
    "pcie3": Link(15.75e9, 0.508),
    "pcie4": Link(31.5e9, 0.508),
    "pcie5": Link(63e9, 0.444),
    "memory": Link(1e9, 1.0),  # processes of one CPU node, gloo over loopback
}
RACKS = {"nvlink5-rack": 72}  # GPUs of several nodes that one switch joins (NVL72)
# Between nodes: 100 Gb/s Ethernet and 200 Gb/s links of the shipped history; an unknown network is TCP.
NETWORK_BYTES_S = {"none": 1e9, "tcp": 8e9, "roce": 35e9, "infiniband": 35e9}
DEFAULT_LORA_R = 16
# MI300X 51 % of the peak, MI325X 60 % (a third more power), A100 and H100 80 to 87 %: the best Bekman found
# (Machine Learning Engineering, maximum achievable matmul FLOPS). By GPU model, else by vendor.
REACH = {"MI325X": 0.72, "AMD": 0.61}


def hardware(inventory: Inventory | None) -> dict[str, Hardware]:
    """Facts of the inventory's GPUs, by GPU model; the smallest counts where pools differ."""
    found: dict[str, Hardware] = {}
    for pool in inventory.pools if inventory else ():
        sheet, before = catalogue.known_gpu(pool.gpu_model), found.get(pool.gpu_model)
        if sheet is not None:
            memory = float(pool.memory_bytes)
            found[pool.gpu_model] = Hardware(
                memory_bytes=min(memory, before.memory_bytes) if before else memory,
                bandwidth_bytes_s=pool.bandwidth_bytes_s or sheet.bandwidth_bytes_s,
                peak_flops=pool.peak_flops,
            )
    return found


def columns(
    configs: Sequence[Config],
    here: Mapping[str, Hardware] | None = None,
    padded: Sequence[float | None] | None = None,
) -> ConfigTable:
    """The configurations as columns.

    `here` overrides data sheets with what nodes measured; `padded` gives each row's processed tokens per
    sample. Raises UnknownModel or UnknownGpu.
    """
    floats = _floats(configs)
    limit = floats["tokens"]
    floats["padded"] = np.array([p or t for p, t in zip(padded, limit, strict=True)]) if padded else limit
    four_bit = [c.method in config_space.QUANTIZED or c.quantization not in (None, "none") for c in configs]
    return ConfigTable(
        **floats,
        adapter=np.array([c.method in config_space.ADAPTERS for c in configs], dtype=bool),
        quantized=np.array(four_bit, dtype=bool),
        checkpointing=np.array([c.gradient_checkpointing is not False for c in configs], dtype=bool),
        fsdp=np.array([_is_fsdp(c) for c in configs], dtype=bool),
        hybrid=np.array([c.sharding == HYBRID and c.number_nodes > 1 for c in configs], dtype=bool),
        float32=np.array([c.precision == "float32" for c in configs], dtype=bool),
        fused=np.array([c.fast_kernels is True for c in configs], dtype=bool),
        reentrant=np.array([c.reentrant_checkpointing is True for c in configs], dtype=bool),
        chunked=np.array([c.chunked_loss is True for c in configs], dtype=bool),
        paged=np.array([c.optimizer_state == PAGED for c in configs], dtype=bool),
        silent=np.array([c.optimizer_state is None for c in configs], dtype=bool),
        **_model_facts(configs),
        **_gpu_facts(configs, here or {}),
    )


def _is_fsdp(config: Config) -> bool:
    return config.number_gpus > 1 and config.sharding in (None, "fsdp", HYBRID) and config.gpu_model != "cpu"


def _state_bytes(config: Config) -> float:
    if config.optimizer_state in STATE_BYTES:
        return STATE_BYTES[config.optimizer_state]
    # Accelerate keeps what FSDP shards in float32 whatever is computed in, but for experts that GPUs share.
    upcast = config.precision is not None and _is_fsdp(config) and (config.expert_parallel or 1) == 1
    return 16.0 if upcast or config.precision == "float32" else 8.0


_FLOATS: dict[str, Callable[[Config], float]] = {
    "gpus": lambda c: c.number_gpus,
    "nodes": lambda c: c.number_nodes,
    "tokens": lambda c: c.tokens_per_sample,
    "batch": lambda c: c.per_device_batch_size,
    "accumulation": lambda c: c.gradient_accumulation_steps,
    "lora_r": lambda c: c.lora_r or DEFAULT_LORA_R,
    "expert_parallel": lambda c: c.expert_parallel or 0,
    "model_parallel": lambda c: c.model_parallel or 1,
    "state_bytes": _state_bytes,
    "network_bytes_s": lambda c: NETWORK_BYTES_S.get(c.network or "tcp", 1e9),
}


def _floats(configs: Sequence[Config]) -> dict[str, Array]:
    return {name: np.array([read(c) for c in configs], dtype=float) for name, read in _FLOATS.items()}


def _codes(names: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Distinct names and each row's place among them: facts are looked up once per name."""
    place = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return list(place), np.array([place[name] for name in names], dtype=np.intp)


def _model_facts(configs: Sequence[Config]) -> dict[str, Array]:
    names, codes = _codes([c.model_name for c in configs])
    models = [catalogue.model(name) for name in names]
    facts: dict[str, list[float]] = {
        "layers": [m.layers for m in models],
        "hidden": [m.hidden for m in models],
        "queries": [m.heads * m.head_dim for m in models],
        "keys": [m.kv_heads * m.head_dim for m in models],
        "mlp": [m.active_mlp_width for m in models],
        "mlp_matrices": [3 if m.mlp_gated else 2 for m in models],
        "vocab": [m.vocab for m in models],
        "parameters": [m.parameters for m in models],
        "active_parameters": [m.active_parameters for m in models],
        "matmul": [m.matmul_parameters for m in models],
        "blocks": [m.block_parameters for m in models],
        "experts": [m.experts for m in models],
        "expert_width": [m.mlp_width for m in models],
        "attention_layers": [m.attention_layers for m in models],
        "adapted": [adapted_layers.ends(m) for m in models],
        "towers": [m.tower_parameters for m in models],
    }
    return {name: np.array(values, dtype=float)[codes] for name, values in facts.items()}


def _gpu_facts(configs: Sequence[Config], here: Mapping[str, Hardware]) -> dict[str, Array]:
    names, codes = _codes([f"{c.gpu_model}|{c.precision or ''}" for c in configs])
    kinds = ("peak", "reach", "bandwidth", "memory", "link_bytes_s", "rack")
    facts: dict[str, list[float]] = {name: [] for name in kinds}
    is_cpu = []
    for name in names:
        gpu_model, _, precision = name.partition("|")
        sheet, found = catalogue.gpu(gpu_model), here.get(gpu_model)
        is_cpu.append(sheet.gpu_model == "cpu")
        facts["peak"].append((found and found.peak_flops) or sheet.peak_flops(precision or None))
        facts["reach"].append(REACH.get(sheet.gpu_model, REACH.get(sheet.vendor, 1.0)))
        facts["bandwidth"].append(found.bandwidth_bytes_s if found else sheet.bandwidth_bytes_s)
        facts["memory"].append(found.memory_bytes if found else sheet.memory_bytes)
        facts["link_bytes_s"].append(sheet.link_bytes_s * LINKS[sheet.link].usable)
        facts["rack"].append(RACKS.get(sheet.link, 0))
    joined: dict[str, Array] = {key: np.array(v, dtype=float)[codes] for key, v in facts.items()}
    joined["cpu"] = np.array(is_cpu, dtype=bool)[codes]
    return joined
