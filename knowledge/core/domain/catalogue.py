"""Facts about base models and GPUs, read once from the tables in `knowledge/data`.

A name resolves by key or alias exactly, else with case, blanks, `_` and `-` evened out. Dots stay:
`opt-1.3b` and `opt-13b` are different models.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar, get_type_hints

from trainer.protocol import RANDOM_MODEL

GIB = 2**30
BYTES_PER_TOKEN = 4.0  # English text under the usual tokenizers
_TABLES = files("knowledge") / "data"


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
    """A decoder model's shape. `mlp_width` is of one expert; `parameters` counts tied matrices once.

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
        """Weights in matrix products per token: the attention, MLP and output matrices (`Nmm`)."""
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
class Gpu:
    """A GPU's data sheet: bytes, FLOP/s of dense matrix products, bytes/s; None where it has none."""

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

    def peak_flops(self, precision: str | None) -> float:
        """The dense peak in a precision; GPUs without bf16 units are compared by their fp16 peak.

        An unstated one may be the fastest there is: so train most of MLPerf's systems.
        """
        if precision == "float32" and self.fp32_flops:
            return self.fp32_flops
        if precision in (None, "fp8") and self.fp8_flops:
            return self.fp8_flops
        best = self.fp16_flops if precision == "float16" else self.bf16_flops
        return best or self.bf16_flops or self.fp16_flops or self.fp32_flops or 1.0


class Beyond:
    """Where to look for names that the shipped tables lack; the app sets both at its start."""

    def __init__(self) -> None:
        self.model: Callable[[str], Model | None] = lambda _: None
        self.gpu: Callable[[str], Gpu | None] = lambda _: None


beyond = Beyond()


def model(name: str) -> Model:
    """The model of that name or alias; `random/NAME` has NAME's facts. Raises UnknownModel."""
    found = known_model(name)
    if found is None:
        bare = name.removeprefix(RANDOM_MODEL)
        raise UnknownModel(bare, _suggest(_models(), bare))
    return found


def known_model(name: str) -> Model | None:
    """The same or None, much sooner, as no names are looked for that resemble it."""
    bare = name.removeprefix(RANDOM_MODEL)
    found = shipped_model(bare) or beyond.model(bare) or mirrored(bare)
    if found is None or bare == name:
        return found
    return replace(found, bytes_per_token=1.0)  # random weights go with a tokenizer of bytes


def shipped_model(name: str) -> Model | None:
    """The model that the shipped table has under that very name or alias, or None."""
    return _lookup(_models(), name)


def mirrored(name: str) -> Model | None:
    """The shipped model that another organisation of the hub offers as `OWNER/ITS-NAME`; None if it is none.

    Copies that need no licence click and models trained further keep the name, and with it the shape.
    """
    owner, slash, bare = name.partition("/")
    return _bare_models().get(_even(bare)) if owner and slash else None


def gpu(name: str) -> Gpu:
    """The GPU of that name or alias. Raises UnknownGpu."""
    found = known_gpu(name)
    if found is None:
        raise UnknownGpu(name, _suggest(_gpus(), name))
    return found


def known_gpu(name: str) -> Gpu | None:
    """The GPU of that name or alias, or None."""
    return _lookup(_gpus(), name) or beyond.gpu(name)


def model_names() -> list[str]:
    """Keys of all catalogued models, in the table's order."""
    return list(dict.fromkeys(entry.model_name for entry in _models().values()))


def gpu_names() -> list[str]:
    """Keys of all catalogued GPUs, in the table's order."""
    return list(dict.fromkeys(entry.gpu_model for entry in _gpus().values()))


_Entry = TypeVar("_Entry", Model, Gpu)


def _even(name: str) -> str:
    return re.sub(r"[ _-]+", "-", name.strip().lower())


def _lookup(table: Mapping[str, _Entry], name: str) -> _Entry | None:
    return table.get(name) or table.get(_even(name))


def _suggest(table: Mapping[str, Model | Gpu], name: str) -> tuple[str, ...]:
    """Names that hold what was given, the shortest first, then those that look like it."""
    holding = sorted((known for known in table if name.lower() in known.lower()), key=len)
    found = [*holding, *difflib.get_close_matches(name, table, n=3, cutoff=0.6)]
    return tuple(dict.fromkeys(_key(table[known]) for known in found))[:3]


def _key(entry: Model | Gpu) -> str:
    return entry.model_name if isinstance(entry, Model) else entry.gpu_model


def _rows(file: str) -> list[dict[str, str]]:
    return list(csv.DictReader((_TABLES / file).read_text(encoding="utf-8").splitlines()))


def _indexed(entries: list[tuple[_Entry, list[str]]]) -> dict[str, _Entry]:
    """Names to entries; keys and exact aliases win over evened-out spellings."""
    table = {name: entry for entry, names in entries for name in names if name}
    for name, entry in list(table.items()):
        table.setdefault(_even(name), entry)
    return table


@lru_cache(maxsize=1)
def _models() -> dict[str, Model]:
    types = get_type_hints(Model)
    entries = []
    for row in _rows("models.csv"):
        cells = {f.name: row[f.name] for f in fields(Model) if row.get(f.name)}
        values: dict[str, Any] = {
            name: cell if types[name] is str else types[name](float(cell)) for name, cell in cells.items()
        }
        if row["model_name"].startswith("builtin/"):
            values["bytes_per_token"] = 1.0
        entries.append((Model(**values), [row["model_name"], *row["aliases"].split("|")]))
    return _indexed(entries)


@lru_cache(maxsize=1)
def _bare_models() -> dict[str, Model]:
    """Models of the hub by their names without the organisation, evened out."""
    return {
        _even(name.partition("/")[2] or name): entry
        for name, entry in _models().items()
        if not entry.model_name.startswith("builtin/")
    }


def _flops(cell: str) -> float | None:
    return float(cell) * 1e12 if cell else None


@lru_cache(maxsize=1)
def _gpus() -> dict[str, Gpu]:
    entries = []
    for row in _rows("gpus.csv"):
        entry = Gpu(
            gpu_model=row["gpu_model"],
            memory_bytes=float(row["memory_gib"] or 4) * GIB,
            bf16_flops=_flops(row["bf16_tflops_dense"]),
            fp16_flops=_flops(row["fp16_tflops_dense"]),
            fp32_flops=_flops(row["tf32_tflops_dense"] or row["fp32_tflops"]),
            bandwidth_bytes_s=float(row["memory_bandwidth_gb_s"]) * 1e9,
            link=row["link"],
            link_bytes_s=float(row["link_gb_s_per_direction_total"]) * 1e9,
            vendor=row["vendor"],
            fp8_flops=_flops(row["fp8_tflops_dense"]),
        )
        entries.append((entry, [row["gpu_model"], *row["aliases"].split("|")]))
    return _indexed(entries)
