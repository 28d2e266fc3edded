"""Facts for names that the catalogue lacks, borrowed from its entry most alike: rough, said so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from knowledge.core.domain import catalogue

ALIKE = 0.6  # similarity from which a name counts as a variant of a catalogued one (difflib's cutoff)
USUAL_GPU = "A100-SXM4-80GB"
SIZE = re.compile(r"(?<![\da-z.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z\d])")
MEMORY = re.compile(r"(\d+)\s*gi?b(?![a-z\d])")
NOISE = re.compile(r"nvidia|geforce|tesla|amd|instinct|\d+\s*gi?b(?![a-z\d])|[ _-]+")  # tells no GPUs apart
SAME_SIZE = 0.3  # of ln(parameters): names round, and of sizes as near as this the more alike name is taken


@dataclass(frozen=True, slots=True)
class NearestFacts:
    """Which catalogued entry answers for a name that is unknown, by that name."""

    models: dict[str, str] = field(default_factory=dict)
    gpus: dict[str, str] = field(default_factory=dict)

    def model(self, name: str) -> catalogue.Model:
        """The catalogued model nearest in the size that the name states, else in name."""
        if (same := catalogue.mirrored(name)) is not None:
            return same
        found = model_like(name)
        self.models[name] = found.model_name
        return replace(found, model_name=name)

    def gpu(self, name: str) -> catalogue.Gpu:
        """The catalogued GPU nearest in name, with the memory that the name states."""
        found, memory = gpu_like(name), MEMORY.search(name.lower())
        self.gpus[name] = found.gpu_model
        size = float(memory[1]) * catalogue.GIB if memory and float(memory[1]) else found.memory_bytes
        return replace(found, gpu_model=name, memory_bytes=size)


@contextmanager
def nearest_facts() -> Iterator[NearestFacts]:
    """Inside, unknown names have facts, and nothing is looked up anywhere but in the shipped tables."""
    borrowed, before = NearestFacts(), (catalogue.beyond.model, catalogue.beyond.gpu)
    catalogue.beyond.model, catalogue.beyond.gpu = borrowed.model, borrowed.gpu
    try:
        yield borrowed
    finally:
        catalogue.beyond.model, catalogue.beyond.gpu = before


def model_like(name: str) -> catalogue.Model:
    """The shipped model that most probably has the shape of the one named."""
    size = parameters_of(name)
    every = [catalogue.model(known) for known in catalogue.model_names() if not known.startswith("builtin/")]

    def unlike(model: catalogue.Model) -> tuple[int, float, str]:
        off = abs(math.log(model.parameters / size)) if size else 0.0
        return int(off / SAME_SIZE), -_similarity(name, model.model_name), model.model_name

    return min(every, key=unlike)


def parameters_of(name: str) -> float | None:
    """Parameters that a name such as `acme-7b-chat` states; None if it states none."""
    found = SIZE.findall(name.lower())
    return float(found[-1][0]) * {"b": 1e9, "m": 1e6}[found[-1][1]] or None if found else None


def gpu_like(name: str) -> catalogue.Gpu:
    """The shipped GPU nearest in name; where none is near, the one that most was measured on."""
    known = [gpu for gpu in catalogue.gpu_names() if gpu != "cpu"]
    alike = {gpu: _similarity(_bare(name), _bare(gpu)) for gpu in known}
    nearest = max(known, key=lambda gpu: (alike[gpu], _similarity(name, gpu)))
    return catalogue.gpu(nearest if alike[nearest] >= ALIKE else USUAL_GPU)


def _bare(gpu: str) -> str:
    return NOISE.sub("", gpu.lower())


def _similarity(one: str, other: str) -> float:
    """From 0 to 1, without the organisations before a slash."""
    first, second = (text.lower().rsplit("/", 1)[-1] for text in (one, other))
    return SequenceMatcher(None, first, second).ratio()
