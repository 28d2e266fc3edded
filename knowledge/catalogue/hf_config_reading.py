"""The reading of a model's config.json.

Decides where it is read from, and whether it states the sizes that a prediction needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings

from knowledge.catalogue import remote
from knowledge.core.domain.hf_config import with_usual_names
from trainer import roots, strict_json
from trainer.architectures import EXPERTS
from trainer.protocol_parsing import safe_path

LARGEST_CONFIG = 1_000_000  # bytes of a config.json
HUB_TIMEOUT_S = 10.0
LARGEST_SIZE = 10_000_000
NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
KNOWN = (
    *("num_key_value_heads", "head_dim", "max_position_embeddings", *EXPERTS),
    *("num_experts_per_tok", "moe_intermediate_size", "shared_intermediate_size"),
    *("shared_expert_intermediate_size", "n_shared_experts", "first_k_dense_replace"),
    *("kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"),
    *("sliding_window", "sliding_window_pattern"),
)


class CannotAdd(ValueError):
    """The entry was not added; `fields` says of each wrong field why, and what to do."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {message}" for name, message in self.fields.items()))


def config_text(place: str) -> str:
    """Return the config.json of a local file or folder, or of a hub model id.

    Any place on this machine is allowed. Raises CannotAdd.
    """
    try:
        path = Path(place)
        path = path / "config.json" if path.is_dir() else path
        if path.is_file():
            return read(path)
    except (OSError, ValueError) as wrong:  # too long for a path, or NUL in it
        raise CannotAdd({"place": "is neither a path of this machine nor a model id of the hub"}) from wrong
    return _hub_text(place)


def listed_text(place: str) -> str:
    """Return the config.json of a place below MODEL_ROOTS or of a hub model id.

    It serves requests from other machines. Raises CannotAdd, with one answer for all places that
    lie elsewhere, whether they exist or not.
    """
    if safe_path(place):
        return _hub_text(place)
    config = local_config(place)
    if config is None:
        raise CannotAdd(
            {"place": "is neither below a folder that MODEL_ROOTS lists nor a model id of the hub"}
        )
    return read(config)


def local_config(place: str) -> Path | None:
    """Return the config.json that a path below MODEL_ROOTS means, else None.

    The path is that of a folder or of the file itself.
    """
    found = roots.find(place, settings.MODEL_ROOTS) if place.isprintable() else None
    if found is not None and found.is_dir():
        found = roots.find(found / "config.json", settings.MODEL_ROOTS)
    return found


def _hub_text(place: str) -> str:
    address = f"{settings.HF_ENDPOINT}/{place}/resolve/main/config.json"
    try:
        return remote.get(address, largest=LARGEST_CONFIG, within_s=HUB_TIMEOUT_S).decode()
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeDecodeError) as wrong:
        remedy = "without internet, copy its config.json here and give that path"
        message = f"{place} is neither a file or folder here nor readable at {address} ({wrong}); {remedy}"
        raise CannotAdd({"place": message}) from wrong


def read(path: Path) -> str:
    """The text of a config.json. Raises CannotAdd."""
    try:
        if path.stat().st_size > LARGEST_CONFIG:
            raise CannotAdd({"place": f"{path} is larger than a config.json can be"})
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise CannotAdd({"place": f"{path} cannot be read: {wrong}"}) from wrong


def check_sizes(text: str) -> None:
    """Raises CannotAdd naming the sizes that a config.json lacks or states wrongly."""
    try:
        raw = strict_json.loads(text)
    except ValueError as wrong:
        raise CannotAdd({"config": f"is not JSON: {str(wrong)[:200]}"}) from wrong
    if not isinstance(raw, dict) or not isinstance(raw.get("text_config", raw), dict):
        raise CannotAdd({"config": "must be the JSON object of a config.json"})
    sizes = with_usual_names(raw)
    lacking = [name for name in NEEDED if sizes.get(name) is None]
    if lacking:
        raise CannotAdd({"config": f"lacks a size that a prediction needs: {', '.join(lacking)}"})
    misstated = [name for name in NEEDED if not _is_size(sizes[name], least=1)]
    misstated += [name for name in KNOWN if not _is_size(sizes.get(name) or 0, least=0)]
    if misstated:
        message = f"must be a whole number, {LARGEST_SIZE:,} at most"
        raise CannotAdd({"config": f"{', '.join(misstated)}: {message}"})


def _is_size(value: Any, *, least: int) -> bool:
    return strict_json.is_whole(value) and least <= value <= LARGEST_SIZE
