"""Tokens/s by how close the GPUs of a job lie in their nodes.

Physics says by what factor a slower link slows a job; the factor is laid on what was predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config
from knowledge.core.predict.base import BasePredictor

NVLINK = "nvlink"
# Bytes/s that a ring reaches where all GPUs share a switch, a NUMA node, a socket, a machine: stated for PCIe
# 4, of which PCIe 5 has twice as much, and PCIe 3 half.
PCIE_BYTES_S = {"pcie": 20e9, "numa": 16e9, "socket": 12e9, "node": 9e9}
LEVELS = (NVLINK, *PCIE_BYTES_S)  # the closest first
# The bus beside the GPUs' own links, by the link that the catalogue names.
BUS = {
    "nvlink2": 0.5, "nvlink3": 1.0, "nvlink4": 2.0, "nvlink5": 2.0, "nvlink5-rack": 2.0,
    "pcie3": 0.5, "pcie4": 1.0, "pcie5": 2.0,
}  # fmt: skip


def rates_by_level(
    predictor: BasePredictor,
    configs: Sequence[Config],
    c: ConfigTable,
    rates: Array,
    measured: Sequence[Mapping[str, float]],
) -> list[dict[str, float]]:
    """Tokens/s of each configuration by level.

    There are none where closeness makes no difference: on one GPU a node, and on GPUs and CPU slots of whose
    links nothing is stated or measured. c: their columns. rates: as predicted with the catalogue's link,
    shape (n,). measured: bytes/s by level on the nodes of each, in place of what is stated of the bus. NVLink
    stays the catalogue's, over which past runs were made: a rate that was learnt from them has it already.
    """
    usual = predictor.physics(c)
    found: list[dict[str, float]] = [{} for _ in configs]
    for level in LEVELS:
        links = np.array(
            [
                _link_bytes_s(x, predictor.catalogue, level, of_nodes.get(level))
                for x, of_nodes in zip(configs, measured, strict=True)
            ]
        )
        slowed = rates
        if not np.isnan(links).all():
            known = np.where(np.isnan(links), c.link_bytes_s, links)
            slowed = rates * predictor.physics(replace(c, link_bytes_s=known)) / usual
        for row, link in enumerate(links):
            if not np.isnan(link):
                found[row][level] = float(slowed[row])
            elif level == NVLINK and _is_linked(configs[row], predictor.catalogue):
                found[row][level] = float(rates[row])
    return found


def rate_at(by_level: Mapping[str, float], level: str) -> float | None:
    """The tokens/s at a level, or at the next looser one that is known."""
    looser = LEVELS[LEVELS.index(level) :]
    return next((by_level[word] for word in looser if word in by_level), None)


def _link_bytes_s(config: Config, catalogue: Catalogue, level: str, measured: float | None) -> float:
    """The link of a level of the bus; NaN if none is measured or stated."""
    if level == NVLINK or config.number_gpus <= config.number_nodes:
        return np.nan
    if measured is not None:
        return measured
    link = catalogue.gpu(config.gpu_model).link
    return PCIE_BYTES_S[level] * BUS[link] if link in BUS else np.nan


def _is_linked(config: Config, catalogue: Catalogue) -> bool:
    linked = catalogue.gpu(config.gpu_model).link.startswith(NVLINK)
    return linked and config.number_gpus > config.number_nodes
