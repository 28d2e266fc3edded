"""Facts on the models and GPUs of configurations as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from knowledge.core.analytic import litgpt_layers, stack
from knowledge.core.analytic.links import LINKS, RACKS
from knowledge.core.analytic.litgpt_layers import LitgptLayer
from knowledge.core.domain import adapted_layers, layer_kinds
from knowledge.core.domain.arrays import Names
from knowledge.core.domain.catalogue import Catalogue, Model
from knowledge.core.domain.types import Config

Key = TypeVar("Key")
# Linear layers of a usual layer that have an adapter.
ADAPTED_LAYERS = {adapted_layers.ALL_LINEAR: 7, adapted_layers.ATTENTION: 4, adapted_layers.QUERY_VALUE: 2}
# MI300X 51 % of the peak, MI325X 60 % (a third more power), A100 and H100 80 to 87 %: the best Bekman found
# (Machine Learning Engineering, maximum achievable matmul FLOPS). By GPU model, else by vendor.
REACH = {"MI325X": 0.72, "AMD": 0.61}


def _as_built(model: Model, *, apart: bool) -> Model:
    """The model with embeddings and head of its own, where software never ties them."""
    if not apart or not model.tied_embeddings:
        return model
    return replace(model, parameters=model.parameters + model.vocab * model.hidden, tied_embeddings=False)


def _codes(names: Sequence[Key]) -> tuple[list[Key], NDArray[np.intp]]:
    """Return the distinct names, looked up once each, and each row's place."""
    place = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return list(place), np.array([place[name] for name in names], dtype=np.intp)


def of_models(configs: Sequence[Config], catalogue: Catalogue) -> dict[str, Any]:
    """Columns of the models, and of what hangs on where their adapters are."""
    kinds = [(stack.placement(c), stack.keeping(c), stack.is_litgpt(c), c.model_name) for c in configs]
    found, codes = _codes(kinds)
    placed = [place for place, _, _, _ in found]
    models = [_as_built(catalogue.model(name), apart=apart) for _, _, apart, name in found]
    both = list(zip(models, placed, strict=True))
    keeping = [layer_kinds.kept(m, kind[1]) for m, kind in zip(models, found, strict=True)]
    of_litgpt = [litgpt_layers.layer_of(m, place) for m, place in both]
    facts: dict[str, list[float]] = {
        "layers": [m.layers for m in models],
        "hidden": [m.hidden for m in models],
        "queries": [m.heads * m.head_dim for m in models],
        "keys": [m.kv_heads * m.head_dim for m in models],
        "heads": [m.heads for m in models],
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
        "adapted": [adapted_layers.ends(m, place) for m, place in both],
        "adapters": [ADAPTED_LAYERS[place] for place in placed],
        "head": [m.vocab * m.hidden for m in models],
        "towers": [m.tower_parameters for m in models],
    }
    return {
        **{name: np.array(values, dtype=float)[codes] for name, values in facts.items()},
        "kept": np.array(keeping).reshape(-1, len(layer_kinds.KEPT))[codes],
        "litgpt_layer": np.array(of_litgpt).reshape(-1, len(LitgptLayer._fields))[codes],
        "model_key": Names([m.model_name for m in models], codes),
        "family": Names([m.architecture for m in models], codes),
    }


def of_gpus(configs: Sequence[Config], catalogue: Catalogue) -> dict[str, Any]:
    """Columns of the GPUs, at the precision that is computed in."""
    names, codes = _codes([f"{c.gpu_model}|{c.precision or ''}|{stack.is_ours(c)}" for c in configs])
    kinds = ("peak", "reach", "bandwidth", "memory", "link_bytes_s", "rack")
    facts: dict[str, list[float]] = {name: [] for name in kinds}
    keys: list[str] = []
    for name in names:
        gpu_model, precision, ours = name.rsplit("|", 2)
        sheet = catalogue.gpu(gpu_model)
        keys.append(sheet.gpu_model)
        facts["peak"].append(sheet.peak_flops(precision or None, tf32=ours == "False"))
        facts["reach"].append(REACH.get(sheet.gpu_model, REACH.get(sheet.vendor, 1.0)))
        facts["bandwidth"].append(sheet.bandwidth_bytes_s)
        facts["memory"].append(sheet.memory_bytes)
        facts["link_bytes_s"].append(sheet.link_bytes_s * LINKS[sheet.link].usable)
        facts["rack"].append(RACKS.get(sheet.link, 0))
    of_row = Names(keys, codes)
    return {
        **{name: np.array(values, dtype=float)[codes] for name, values in facts.items()},
        "gpu_key": of_row,
        "cpu": of_row.among({"cpu"}),
    }
