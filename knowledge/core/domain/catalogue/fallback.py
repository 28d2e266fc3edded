"""Facts for names that the catalogue lacks.

They are borrowed from its most similar entry; they are rough, and reported as such.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher

from knowledge.core.domain.catalogue import GIB, Catalogue, GpuModel, Model
from knowledge.core.domain.types import Config

ALIKE = 0.6  # similarity from which a name counts as a variant of a catalogued one (difflib's cutoff)
USUAL_GPU = "A100-SXM4-80GB"
SIZE = re.compile(r"(?<![\da-z.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z\d])")
MEMORY = re.compile(r"(\d+)\s*gi?b(?![a-z\d])")
NOISE = re.compile(r"nvidia|geforce|tesla|amd|instinct|\d+\s*gi?b(?![a-z\d])|[ _-]+")  # tells no GPUs apart
SAME_SIZE = 0.3  # of ln(parameters): names round, and of sizes as near as this the more alike name is taken


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NearestCatalogue(Catalogue):
    """A catalogue that knows every name.

    A model or GPU that it lacks has the facts of the entry most alike.
    """

    def _model(self, name: str) -> Model:
        """The model of the name; else the nearest in the size that it states, or in name."""
        return super()._model(name) or replace(model_like(name, self), model_name=name)

    def _data_sheet(self, name: str) -> GpuModel:
        """The GPU of the name; else the nearest one, with the memory that the name states."""
        if (same := super()._data_sheet(name)) is not None:
            return same
        found, memory = gpu_like(name, self), MEMORY.search(name.lower())
        size = float(memory[1]) * GIB if memory and float(memory[1]) else found.memory_bytes
        return replace(found, gpu_model=name, memory_bytes=size)

    def borrowed(self, config: Config) -> dict[str, str]:
        """Return the entries that answer for names that the catalogue lacks.

        The names are those of the configuration.
        """
        found = {}
        if super()._model(model := config.model_name) is None:
            found[model] = model_like(model, self).model_name
        if super()._data_sheet(gpu := config.gpu_model) is None:
            found[gpu] = gpu_like(gpu, self).gpu_model
        return found


def nearest_catalogue(catalogue: Catalogue) -> NearestCatalogue:
    """The catalogue with facts for the names that it lacks."""
    return NearestCatalogue(**{field.name: getattr(catalogue, field.name) for field in fields(Catalogue)})


def model_like(name: str, catalogue: Catalogue) -> Model:
    """The shipped model that most probably has the shape of the one named."""
    size = parameters_of(name)
    every = [model for model in catalogue.shipped_models if not model.model_name.startswith("builtin/")]

    def unlike(model: Model) -> tuple[int, float, str]:
        off = abs(math.log(model.parameters / size)) if size else 0.0
        return int(off / SAME_SIZE), -_similarity(name, model.model_name), model.model_name

    return min(every, key=unlike)


def parameters_of(name: str) -> float | None:
    """Parameters that a name such as `acme-7b-chat` states, or None.

    The largest number counts, as mixtures state their active ones as well.
    """
    stated = [float(number) * {"b": 1e9, "m": 1e6}[unit] for number, unit in SIZE.findall(name.lower())]
    return max(stated, default=0.0) or None


def gpu_like(name: str, catalogue: Catalogue) -> GpuModel:
    """Return the shipped GPU nearest in name.

    Where none is near, it is the GPU with the most measurements.
    """
    known = {gpu.gpu_model: gpu for gpu in catalogue.shipped_gpus if gpu.gpu_model != "cpu"}
    alike = {gpu: _similarity(_bare(name), _bare(gpu)) for gpu in known}
    nearest = max(known, key=lambda gpu: (alike[gpu], _similarity(name, gpu)))
    return known[nearest if alike[nearest] >= ALIKE else USUAL_GPU]


def _bare(gpu: str) -> str:
    return NOISE.sub("", gpu.lower())


def _similarity(one: str, other: str) -> float:
    """Likeness of names, from 0 to 1, without the organisations before a slash."""
    first, second = (text.lower().rsplit("/", 1)[-1] for text in (one, other))
    return SequenceMatcher(None, first, second).ratio()
