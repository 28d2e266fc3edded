"""Facts on models and GPUs by name.

They are one value, which is passed to the code that needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from knowledge.core.domain.catalogue.entries import GpuModel, Model
from knowledge.core.domain.catalogue.names import UnknownGpu, UnknownModel, even, indexed, lookup, suggest
from knowledge.core.domain.types import Config, Inventory
from trainer.protocol import RANDOM_MODEL


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
        """Make a catalogue of entries and all of their names, the keys first."""
        by_name = indexed(models)
        mirrors = {
            even(name.partition("/")[2] or name): entry
            for name, entry in by_name.items()
            if not entry.model_name.startswith("builtin/")
        }
        return cls(models=by_name, gpus=indexed(gpus), mirrors=mirrors)

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
        return lookup(self.models, name)

    def shipped_gpu(self, name: str) -> GpuModel | None:
        """The shipped GPU of that name or alias, or None."""
        return lookup(self.gpus, name)

    def model(self, name: str) -> Model:
        """Return the model of that name or alias.

        `random/NAME` has NAME's facts. Raises UnknownModel.
        """
        found = self.known_model(name)
        if found is None:
            bare = name.removeprefix(RANDOM_MODEL)
            raise UnknownModel(bare, suggest(self.models, bare))
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
            raise UnknownGpu(name, suggest(self.gpus, name))
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
        """All entries of this kind: added ones, then the shipped ones."""
        return [*self.added_models.values(), *self.shipped_models]

    @property
    def every_gpu(self) -> list[GpuModel]:
        """All entries of this kind: added ones, then the shipped ones."""
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

    def as_listed(self) -> Catalogue:
        """The catalogue with GPUs as its tables have them, not as nodes do."""
        return replace(self, measured_gpus={})

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
        return self.mirrors.get(even(bare)) if owner and slash else None
