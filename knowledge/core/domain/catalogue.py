"""Facts on models and GPUs by name.

They are one value, which is passed to the code that needs them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from knowledge.core.domain.types import Config, Inventory
from trainer.protocol import RANDOM_MODEL

GIB = 2**30
BYTES_PER_TOKEN = 4.0  # English text under the usual tokenizers


class UnknownName(ValueError):
    """A name the catalogue does not have; `suggestions` are the nearest ones."""

    kind = "name"

    def __init__(self, name: str, suggestions: tuple[str, ...] = ()) -> None:
        self.name, self.suggestions = name, suggestions
        hint = f" Did you mean {' or '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"The {self.kind} {name!r} is not in the catalogue.{hint}")


class UnknownModel(UnknownName):
    kind = "model"


class UnknownGpu(UnknownName):
    kind = "GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder model's shape.

    `mlp_width` is of one expert; `parameters` counts tied matrices once.

    tower_parameters: of parts for images or sound, beside `parameters`; text does not reach them.
    """

    model_name: str
    architecture: str
    parameters: int
    active_parameters: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    mlp_gated: bool
    vocab: int
    max_context: int
    tied_embeddings: bool
    attention_layers: int
    experts: int = 0
    experts_per_token: int = 0
    shared_mlp_width: int = 0
    tower_parameters: int = 0
    bytes_per_token: float = BYTES_PER_TOKEN

    @property
    def active_mlp_width(self) -> int:
        """Width of all MLPs that one token passes through in a layer."""
        return max(1, self.experts_per_token) * self.mlp_width + self.shared_mlp_width

    @property
    def matmul_parameters(self) -> float:
        """Weights in matrix products per token (`Nmm`).

        They are the attention, MLP and output matrices.
        """
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * self.hidden * (queries + keys)
        mamba = 6 * self.hidden**2
        mlp = (3 if self.mlp_gated else 2) * self.hidden * self.active_mlp_width
        return (
            self.attention_layers * attention
            + (self.layers - self.attention_layers) * mamba
            + self.layers * mlp
            + self.vocab * self.hidden
        )

    @property
    def block_parameters(self) -> float:
        """Weights inside the decoder blocks: what 4-bit quantisation stores in 4 bits."""
        embeddings = (1 if self.tied_embeddings else 2) * self.vocab * self.hidden
        return max(0.0, float(self.parameters - embeddings))


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """A GPU's data sheet; None where it states nothing.

    Units are bytes, FLOP/s of dense matrix products, and bytes/s.
    memory_bytes: as the driver reports it. usable_bytes: what it leaves to programs; None: not known.
    """

    gpu_model: str
    memory_bytes: float
    bf16_flops: float | None
    fp16_flops: float | None
    fp32_flops: float | None
    bandwidth_bytes_s: float
    link: str
    link_bytes_s: float
    vendor: str = ""
    fp8_flops: float | None = None
    usable_bytes: float | None = None

    @property
    def capacity_bytes(self) -> float:
        """What a program may allocate, as far as that is known."""
        return self.usable_bytes or self.memory_bytes

    def peak_flops(self, precision: str | None) -> float:
        """Return the dense peak in a precision.

        GPUs without bf16 units are compared by their fp16 peak. An unstated one may be the fastest there is:
        so train most of MLPerf's systems.
        """
        if precision == "float32" and self.fp32_flops:
            return self.fp32_flops
        if precision in (None, "fp8") and self.fp8_flops:
            return self.fp8_flops
        best = self.fp16_flops if precision == "float16" else self.bf16_flops
        return best or self.bf16_flops or self.fp16_flops or self.fp32_flops or 1.0

    def at_rate(self, flops: float) -> GpuModel:
        """The GPU with one measured peak for every precision that it computes in."""
        return replace(
            self,
            bf16_flops=self.bf16_flops and flops,
            fp16_flops=self.fp16_flops and flops,
            fp32_flops=self.fp32_flops and flops,
            fp8_flops=self.fp8_flops and flops,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Catalogue:
    """Models and GPUs by name.

    A catalogue is equal to itself alone, so that what was made with one can be kept by it. `models` and
    `gpus` are shipped, by key or alias exactly, else with case, blanks, `_` and `-` evened out. Dots stay:
    `opt-1.3b` and `opt-13b` are different models. `mirrors`: the hub's models by their evened-out name
    without the organisation. Added ones go by their own name alone. `measured_gpus`: GPUs as the nodes of a
    cluster have them, by the names that these give.
    """

    models: Mapping[str, Model]
    gpus: Mapping[str, GpuModel]
    mirrors: Mapping[str, Model]
    added_models: Mapping[str, Model] = field(default_factory=dict)
    added_gpus: Mapping[str, GpuModel] = field(default_factory=dict)
    measured_gpus: Mapping[str, GpuModel] = field(default_factory=dict)

    @classmethod
    def of(
        cls, models: Iterable[tuple[Model, Sequence[str]]], gpus: Iterable[tuple[GpuModel, Sequence[str]]]
    ) -> Catalogue:
        """From entries and all of their names, the keys first."""
        by_name = _indexed(models)
        mirrors = {
            _even(name.partition("/")[2] or name): entry
            for name, entry in by_name.items()
            if not entry.model_name.startswith("builtin/")
        }
        return cls(models=by_name, gpus=_indexed(gpus), mirrors=mirrors)

    @property
    def shipped_models(self) -> list[Model]:
        """All shipped models, in the table's order."""
        return list({entry.model_name: entry for entry in self.models.values()}.values())

    @property
    def shipped_gpus(self) -> list[GpuModel]:
        """All shipped GPUs, in the table's order."""
        return list({entry.gpu_model: entry for entry in self.gpus.values()}.values())

    def shipped_model(self, name: str) -> Model | None:
        """The shipped model that has that very name or alias, or None."""
        return _lookup(self.models, name)

    def shipped_gpu(self, name: str) -> GpuModel | None:
        """The shipped GPU of that name or alias, or None."""
        return _lookup(self.gpus, name)

    def model(self, name: str) -> Model:
        """Return the model of that name or alias.

        `random/NAME` has NAME's facts. Raises UnknownModel.
        """
        found = self.known_model(name)
        if found is None:
            bare = name.removeprefix(RANDOM_MODEL)
            raise UnknownModel(bare, _suggest(self.models, bare))
        return found

    def known_model(self, name: str) -> Model | None:
        """The same or None, much sooner, as no names are looked for that resemble it."""
        bare = name.removeprefix(RANDOM_MODEL)
        found = self._model(bare)
        if found is None or bare == name:
            return found
        return replace(found, bytes_per_token=1.0)  # random weights go with a tokenizer of bytes

    def gpu(self, name: str) -> GpuModel:
        """The GPU of that name or alias. Raises UnknownGpu."""
        found = self.known_gpu(name)
        if found is None:
            raise UnknownGpu(name, _suggest(self.gpus, name))
        return found

    def known_gpu(self, name: str) -> GpuModel | None:
        """The GPU of that name or alias, or None."""
        return self.measured_gpus.get(name) or self._data_sheet(name)

    def knows(self, config: Config) -> bool:
        """Are both the model and the GPU known?"""
        known_model = self.known_model(config.model_name) is not None
        return known_model and self.known_gpu(config.gpu_model) is not None

    def model_key(self, name: str) -> str:
        """Return the catalogue's own name of a model.

        A name that it does not have stays as it is.
        """
        found = self.known_model(name)
        return found.model_name if found else name

    def gpu_key(self, name: str) -> str:
        """The catalogue's own name of a GPU; a name that it does not have stays as it is."""
        found = self.known_gpu(name)
        return found.gpu_model if found else name

    def same_gpu(self, one: str, other: str) -> bool:
        """Do both names mean the same GPU model?"""
        return self.gpu_key(one) == self.gpu_key(other)

    def canonical(self, config: Config) -> Config:
        """The configuration under the catalogue's own names."""
        model, gpu = self.model_key(config.model_name), self.gpu_key(config.gpu_model)
        return replace(config, model_name=model, gpu_model=gpu)

    @property
    def every_model(self) -> list[Model]:
        """All there are: added ones, then the shipped ones."""
        return [*self.added_models.values(), *self.shipped_models]

    @property
    def every_gpu(self) -> list[GpuModel]:
        """All there are: added ones, then the shipped ones."""
        return [*self.added_gpus.values(), *self.shipped_gpus]

    def with_added(
        self, models: Mapping[str, Model], gpus: Mapping[str, GpuModel] | None = None
    ) -> Catalogue:
        """The catalogue with more entries, each by its own name."""
        return replace(
            self, added_models={**self.added_models, **models}, added_gpus={**self.added_gpus, **(gpus or {})}
        )

    def on(self, inventory: Inventory) -> Catalogue:
        """Return the catalogue with GPUs as the inventory has them.

        The least memory counts where pools differ.
        """
        found: dict[str, GpuModel] = {}
        for pool in inventory.pools:
            sheet, before = self._data_sheet(pool.gpu_model), found.get(pool.gpu_model)
            if sheet is not None:
                memory = float(pool.memory_bytes)
                found[pool.gpu_model] = replace(
                    sheet.at_rate(pool.peak_flops) if pool.peak_flops else sheet,
                    memory_bytes=min(memory, before.memory_bytes) if before else memory,
                    usable_bytes=None,  # a node tells what its driver leaves
                    bandwidth_bytes_s=pool.bandwidth_bytes_s or sheet.bandwidth_bytes_s,
                )
        return replace(self, measured_gpus=found)

    def _model(self, name: str) -> Model | None:
        return self.shipped_model(name) or self.added_models.get(name) or self._mirrored(name)

    def _data_sheet(self, name: str) -> GpuModel | None:
        return self.shipped_gpu(name) or self.added_gpus.get(name)

    def _mirrored(self, name: str) -> Model | None:
        """Find the shipped model that `OWNER/ITS-NAME` copies, or None.

        The owner is another organisation of the hub. Copies that need no licence click and models trained
        further keep the name, and with it the shape.
        """
        owner, slash, bare = name.partition("/")
        return self.mirrors.get(_even(bare)) if owner and slash else None


_Entry = TypeVar("_Entry", Model, GpuModel)


def _even(name: str) -> str:
    return re.sub(r"[ _-]+", "-", name.strip().lower())


def _lookup(table: Mapping[str, _Entry], name: str) -> _Entry | None:
    return table.get(name) or table.get(_even(name))


def _suggest(table: Mapping[str, Model] | Mapping[str, GpuModel], name: str) -> tuple[str, ...]:
    """Suggest names that hold the given one, then those that look like it.

    The shortest of the former come first.
    """
    holding = sorted((known for known in table if name.lower() in known.lower()), key=len)
    found = [*holding, *difflib.get_close_matches(name, table, n=3, cutoff=0.6)]
    return tuple(dict.fromkeys(_key(table[known]) for known in found))[:3]


def _key(entry: Model | GpuModel) -> str:
    return entry.model_name if isinstance(entry, Model) else entry.gpu_model


def _indexed(entries: Iterable[tuple[_Entry, Sequence[str]]]) -> dict[str, _Entry]:
    """Names to entries; keys and exact aliases win over evened-out spellings."""
    table = {name: entry for entry, names in entries for name in names if name}
    for name, entry in list(table.items()):
        table.setdefault(_even(name), entry)
    return table
