"""The output, read as its users read it, before a training says that it succeeded.

The readers are peft's and transformers' own; they rename weights on the way, and leave out what then has no
place with a warning that nobody sees. A model without weights is enough to tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from trainer.train.distributed.sharding import skeleton
from trainer.train.errors import is_out_of_memory, node_fault

_NAMED = 5
_LONGEST_WHY = 300  # characters
_ADAPTER = "adapter_model.safetensors"

Weights = Mapping[str, torch.Tensor]


def what_is_lost(folder: Path, config: Any, learnt: Weights, *, adapter: bool) -> list[str]:
    """Read the output again; return a sentence for people about what finds no place.

    Keys of an adapter that the reader would rename past their layer are spelled so that it renames them back.
    config: of the base model. learnt: the weights by the names that they were trained under.
    """
    try:
        lost = _of_adapter(folder, config, learnt) if adapter else _of_model(folder)
    except Exception as wrong:  # whatever a reader of other people's formats may raise
        if is_out_of_memory(wrong) or node_fault(wrong):
            raise
        return [f"The output cannot be read again: {str(wrong)[:_LONGEST_WHY]}"]
    if not lost:
        return []
    named = ", ".join(lost[:_NAMED]) + (f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else "")
    readers = "peft and transformers" if adapter else "transformers"
    return [
        f"Parts of the output are lost where {readers} of this node read it again ({len(lost)}): {named}."
        " They were trained and are in its files; other versions may find them."
    ]


def _of_adapter(folder: Path, config: Any, learnt: Weights) -> list[str]:
    lost = _unplaced(folder, config, learnt)
    for reverse in _reversed_names(config) if lost else ():
        if _respell(folder / _ADAPTER, lost, reverse):
            lost = _unplaced(folder, config, learnt)
        if not lost:
            break
    return lost


def _unplaced(folder: Path, config: Any, learnt: Weights) -> list[str]:
    """Names of adapted layers with weights that find no place."""
    from peft import PeftConfig, PeftModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tuned = PeftModel(skeleton(config, torch.float32), PeftConfig.from_pretrained(folder))
        found = tuned.load_adapter(folder, "default", torch_device="cpu")
    placed = {name for name, _ in tuned.named_parameters()} - set(found.missing_keys)
    return sorted({_layer(key) for key in learnt.keys() - placed or found.unexpected_keys})


def _layer(key: str) -> str:
    return key.partition(".lora_")[0].removeprefix("base_model.model.")


def _reversed_names(config: Any) -> Iterator[Any]:
    """Yield what takes back a renaming of the reader."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightRenaming

    conversions = get_model_conversion_mapping(skeleton(config, torch.float32)) or ()
    return (entry.reverse_transform() for entry in conversions if isinstance(entry, WeightRenaming))


def _respell(path: Path, layers: list[str], reverse: Any) -> bool:
    """Rename the keys of these layers in an adapter's file; tell whether any changed."""
    from safetensors.torch import load_file, save_file

    stored = load_file(path)
    names = {name: reverse.rename_source_key(name)[0] if _layer(name) in layers else name for name in stored}
    if all(name == before for before, name in names.items()):
        return False
    save_file({names[name]: value for name, value in stored.items()}, path, metadata={"format": "pt"})
    return True


def _of_model(folder: Path) -> list[str]:
    """Names of weights that the file and the model do not both have."""
    from transformers import AutoModelForCausalLM

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, found = AutoModelForCausalLM.from_pretrained(
            folder,
            device_map={"": "meta"},
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    return sorted({*found["missing_keys"], *found["unexpected_keys"], *map(str, found["mismatched_keys"])})
