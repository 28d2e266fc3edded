"""Nodes that load only the base models which lie on them."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.protocol import RANDOM_MODEL

# Prefixes of models that are made on a node, and of folders, of which nodes say nothing.
WITHOUT_THE_HUB = ("builtin/", RANDOM_MODEL, "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineNode:
    """A node that may not download models; `gpus`: how many it gives to its pool.

    cannot_train: tunings that it cannot train.
    """

    name: str
    gpus: int
    held_models: tuple[str, ...]
    cannot_train: tuple[str, ...] = ()

    def loads(self, model: str) -> bool:
        """Whether a training here finds the model."""
        return model in self.held_models or not is_downloaded(model)


def is_downloaded(model: str) -> bool:
    """Whether nodes without a copy of the model ask the hub for it."""
    return not model.startswith(WITHOUT_THE_HUB)
