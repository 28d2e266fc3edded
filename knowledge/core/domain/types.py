"""The value types of the knowledge app.

Configurations go in; predictions with intervals come out. Units are in the names; memory is bytes of one
GPU, throughput tokens/s of the whole job, cost in the portal's currency. `None` means unknown, no default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from knowledge.core.domain.cost import balanced
from knowledge.core.domain.offline_node import OfflineNode
from knowledge.core.domain.software import spelled
from knowledge.core.records import record

FREE = 1e-12  # what a GPU-second without a price counts for beside money: less than any that has one


class Goal(StrEnum):
    """The meaning of "best" for a job."""

    BALANCED = "balanced"
    FASTEST = "fastest"
    CHEAPEST = "cheapest"
    DEADLINE = "deadline"  # the cheapest of those that end in time
    BUDGET = "budget"  # the fastest of those that cost no more


class Source(StrEnum):
    """Where a predicted figure comes from."""

    EXACT = "exact"  # measured: repeats of this very configuration
    MODEL = "model"  # learnt from history on top of the prior
    OWN = "own"  # physics, corrected by what ran here on this GPU model
    PRIOR = "prior"  # physics alone; its interval is stated, not calibrated
    DEFAULT = "default"  # the recommendation failed: stated defaults, nothing predicted


@record(kw_only=False)
class Interval:
    """A predicted value with its 80 % interval; a bound of None is unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    def scaled(self, factor: float) -> Interval:
        """This interval in another unit."""
        low, high = (None if bound is None else bound * factor for bound in (self.low, self.high))
        return Interval(self.value * factor, low, high)

    def at_most(self, limit: float) -> Interval:
        """This interval of what cannot be more than the limit."""
        low, high = (None if bound is None else min(bound, limit) for bound in (self.low, self.high))
        return Interval(min(self.value, limit), low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One configuration, as in docs/knowledge.md."""

    model_name: str
    tuning: str
    gpu_model: str
    number_gpus: int  # total over all nodes
    tokens_per_sample: int
    per_device_batch_size: int
    number_nodes: int = 1
    gradient_accumulation_steps: int = 1
    precision: str | None = None
    quantization: str | None = None
    lora_r: int | None = None
    lora_alpha: int | None = None
    target_modules: str | None = None  # one of `adapted_layers.PLACEMENTS`
    unquantized_float32: bool | None = None  # of what 4-bit quantisation leaves out
    optimizer_state: str | None = None
    flash_attention: bool | None = None
    gradient_checkpointing: bool | None = None
    reentrant_checkpointing: bool | None = None
    fast_kernels: bool | None = None
    padding_free: bool | None = None
    chunked_loss: bool | None = None
    expert_parallel: int | None = None
    model_parallel: int | None = None  # GPUs that work on one sample: tensor, context or pipeline parallel
    sharding: str | None = None
    network: str | None = None
    software: str | None = None
    run_protocol: str | None = None
    recipe: str | None = None  # of our trainer, where it is not the usual one

    def __post_init__(self) -> None:
        if self.software is not None:
            object.__setattr__(self, "software", spelled(self.software))

    @property
    def effective_batch_size(self) -> int:
        """Samples per optimiser step, all GPUs together."""
        replicas = self.number_gpus // (self.model_parallel or 1)
        return self.per_device_batch_size * self.gradient_accumulation_steps * replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The prediction of one configuration.

    `refused` is the launch rule that the configuration breaks, if any.
    """

    p_valid: float
    tokens_per_second: Interval
    peak_memory_bytes: Interval
    source: Source
    outside: bool = False  # beyond the training data: unseen model family, GPU or range
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Nodes of a pool that cannot train by a tuning.

    why: the reason, with the nodes' names.
    others: GPUs of each node that can.
    """

    why: str
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPool:
    """Nodes that offer one GPU model at one price.

    node_sizes: GPUs of each. memory_bytes: of the smallest GPU; pools of one model may differ. cannot_train:
    tunings that not all of its nodes can train. offline: its nodes that download no models. links: bytes/s by
    how close GPUs of a node lie, where nodes have measured it.
    """

    gpu_model: str
    node_sizes: tuple[int, ...]
    memory_bytes: int
    price_per_gpu_hour: float = 0.0
    peak_flops: float | None = None  # measured at enrolment (cpu slots); None: the catalogue's figure
    bandwidth_bytes_s: float | None = None
    network: str = "none"
    cannot_train: Mapping[str, Unsupported] = field(default_factory=dict, hash=False)
    offline: tuple[OfflineNode, ...] = ()
    links: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The capacity of the empty cluster, built from registered nodes.

    max_nodes: over how many nodes one job may be spread.
    in_service: False where none of these nodes takes work now, so that they stand for what comes back.
    """

    pools: tuple[GpuPool, ...] = ()
    max_nodes: int = 1
    in_service: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The training data as a prediction needs it: row lengths as a histogram.

    lengths: (tokens, rows) pairs in rising order; estimated from bytes until a trainer has counted the tokens
    """

    rows: int
    lengths: tuple[tuple[int, int], ...]
    validation_rows: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of one epoch before cutting and padding."""
        return sum(length * rows for length, rows in self.lengths)


@record
class Option:
    """One way to run a job: the best configuration on one bundle.

    A bundle is a GPU model with a number of nodes and of GPUs.
    price_per_gpu_hour, gpu_memory_bytes: of the GPUs that it is meant for; it runs on none that cost more or
    hold less. None: on any.
    by_level: tokens/s by how close its GPUs lie in their nodes (nvlink, pcie, numa, socket, node), where that
    makes a difference. `tokens_per_second` is that over the link that the GPU model usually has.
    """

    config: Config
    p_valid: float
    tokens_per_second: Interval
    peak_memory_bytes: Interval
    startup_s: float
    duration_s: Interval
    cost: Interval
    source: Source
    outside: bool = False
    steps: int = 0
    padded_tokens: float | None = None  # mean tokens of a row as it is processed: cut and padded
    price_per_gpu_hour: float | None = None
    gpu_memory_bytes: float | None = None
    by_level: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def gpu_model(self) -> str:
        return self.config.gpu_model

    @property
    def gpus(self) -> int:
        return self.config.number_gpus

    @property
    def nodes(self) -> int:
        return self.config.number_nodes

    @property
    def key(self) -> str:
        """The bundle in one word, e.g. `NVIDIA-A100-SXM4-80GB:2x8` (nodes x GPUs of each)."""
        return f"{self.gpu_model}:{self.nodes}x{self.gpus // self.nodes}"

    @property
    def place(self) -> tuple[str, float | None, float | None]:
        """The bundle on GPUs of this price and memory.

        It tells the options of a job apart.
        """
        return self.key, self.price_per_gpu_hour, self.gpu_memory_bytes

    def score(self, goal: Goal, *, priced: bool = False) -> float:
        """Return how good this option is by the goal; lower is better.

        It is seconds, money, or the balance of time and GPU time (CoTune, algorithm derived:
        docs/knowledge.md), or of time and cost where all that are compared have a price (`all_priced`).
        Of places that cost nothing the cheapest needs the least GPU time; none that costs is cheaper.
        """
        time_s = self.duration_s.value
        if goal == Goal.BALANCED:
            return balanced(time_s, self.cost.value if priced else time_s * self.gpus)
        if goal in (Goal.FASTEST, Goal.BUDGET):
            return time_s
        return self.cost.value or FREE * time_s * self.gpus

    def as_json(self) -> dict[str, Any]:
        """Plain values, as programs are told; option_json has those to be stored."""
        return asdict(self)


def all_priced(options: Collection[Option]) -> bool:
    """Whether money can compare these options: each has a price. Else GPU time does."""
    return min([option.cost.value for option in options], default=0.0) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of the configuration: who chose it and the sentence that says why."""

    value: Any
    by: str  # "user" | "recommended" | "default"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A measured execution near a recommendation. Nothing says whose it is."""

    config: Config
    tokens_per_second: float | None
    peak_memory_fraction: float | None
    status: str
    source: str
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySaving:
    """Changes of parameters, and the bytes of one GPU that they save."""

    changes: Mapping[str, tuple[Any, Any]]  # from, to
    saved_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """A recommendation for a request.

    `bound`: what a submission fixes for good. `options`: best first by the goal. `pareto`: keys of those that
    no other beats in both time and cost, fastest first. `memory_parts`: of the best option, bytes of one GPU
    at the peak by what holds them; empty where nothing was predicted. `memory_savings`: changes of it that
    need less, the largest saving first. `trade`: the best option against the runner-up; empty without one.
    """

    bound: dict[str, Any]
    chosen: dict[str, Choice]
    options: tuple[Option, ...]
    evidence: tuple[Evidence, ...] = ()
    predictor_version: int | None = None
    notes: tuple[str, ...] = ()
    pareto: tuple[str, ...] = ()
    memory_parts: Mapping[str, float] = field(default_factory=dict)
    memory_savings: tuple[MemorySaving, ...] = ()
    trade: str = ""

    @property
    def best(self) -> Option | None:
        return self.options[0] if self.options else None
