"""Facts on models and GPUs by name."""

from knowledge.core.domain.catalogue.catalogue import Catalogue
from knowledge.core.domain.catalogue.entries import BYTES_PER_TOKEN, GIB, GpuModel, Model
from knowledge.core.domain.catalogue.names import UnknownGpu, UnknownModel, UnknownName

__all__ = [
    "BYTES_PER_TOKEN",
    "GIB",
    "Catalogue",
    "GpuModel",
    "Model",
    "UnknownGpu",
    "UnknownModel",
    "UnknownName",
]
