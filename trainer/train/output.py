"""Outputs of a training in RUN_DIR/output.

They are adapter or model, tokenizer, model card and metrics.
"""

from __future__ import annotations

import copy
import importlib.metadata
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.checkpoint import describe, digest
from trainer.protocol import to_json
from trainer.train.base.models import Loaded
from trainer.train.base.random_weights import is_random
from trainer.train.data.stops import Stops
from trainer.train.events import RunFigures, metrics_csv
from trainer.train.read_back import what_is_lost
from trainer.train.settings import TrainingSpec

_PACKAGES = ("torch", "transformers", "peft", "accelerate")


@dataclass(frozen=True, slots=True)
class Learnt:
    """The learnt parts of a result.

    weights: the adapter's by name, or all of the model's.
    ends: tokens that end what the model says from now on, beyond those at which it stops already.
    """

    weights: dict[str, torch.Tensor]
    ends: tuple[int, ...]


def software() -> dict[str, str]:
    """Versions of what trained."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {**versions, "python": platform.python_version()}


def write(
    order: TrainingSpec,
    base: Loaded,
    learnt: Learnt,
    measured: RunFigures,
    rows: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Write the folder, read it again, and list its files.

    What is lost on the way is in `measured.output_warnings`.
    Models of random weights leave only their figures: nobody could use the weights.
    """
    folder = order.run_dir / "output"
    folder.mkdir(parents=True, exist_ok=True)
    if not is_random(order):
        _save_model(folder, order, base, learnt)
        adapter = order.settings.tuning != "full"
        measured.output_warnings = what_is_lost(folder, base.model.config, learnt.weights, adapter=adapter)
    (folder / "metrics.csv").write_text(metrics_csv(rows), encoding="utf-8")
    (folder / "README.md").write_text(_card(order, base, learnt.ends, measured), encoding="utf-8")
    return [to_json(file) for file in describe(folder)]


def _save_model(folder: Path, order: TrainingSpec, base: Loaded, learnt: Learnt) -> None:
    model, weights = base.model, learnt.weights
    if order.settings.tuning == "full":
        dtype = getattr(torch, order.settings.precision)
        trained = dict(model.named_parameters()).keys()
        stored = {name: value.to(dtype) if name in trained else value for name, value in weights.items()}
        model.save_pretrained(folder, state_dict=stored)
        model.config.dtype = dtype  # save_pretrained noted that of the master weights
        model.config.save_pretrained(folder)
    else:
        model.save_pretrained(folder, state_dict=weights, save_embedding_layers=False)
    base.tokenizer.save_pretrained(folder)
    if learnt.ends:
        _announce(folder, base, learnt.ends)


def _announce(folder: Path, base: Loaded, ends: tuple[int, ...]) -> None:
    """Name the learnt ends in the generation configuration: programs stop there.

    An adapter gets one as well. It is written as it is: its author may have left settings that
    contradict each other, which transformers refuses to save once anything else was changed.
    """
    from transformers import GenerationConfig

    generation = copy.deepcopy(getattr(base.model, "generation_config", None)) or GenerationConfig()
    generation.eos_token_id = [*sorted(Stops.of(base.tokenizer, generation).announced), *ends]
    generation.to_json_file(folder / "generation_config.json", use_diff=True)


def _card(order: TrainingSpec, base: Loaded, ends: tuple[int, ...], measured: RunFigures) -> str:
    settings, adapter = order.settings, order.settings.tuning != "full"
    name = Path(order.spec.model).name if Path(order.spec.model).is_absolute() else order.spec.model
    params = {key: value for key, value in order.spec.params.items() if value is not None}
    data = [f"- {name}: SHA-256 `{digest(path)}`" for name in _INPUTS if (path := order.input(name))]
    losses = [
        f"- training: from {measured.first_loss or 0:.4f} to {measured.final_loss or 0:.4f}",
        *([] if measured.eval_loss is None else [f"- validation: {measured.eval_loss:.4f}"]),
    ]
    return "\n".join(
        [
            "---",
            f"base_model: {name}",
            f"library_name: {'peft' if adapter else 'transformers'}",
            "pipeline_tag: text-generation",
            "---",
            "",
            f"# {name}, fine-tuned ({settings.tuning})",
            "",
            f"{'A LoRA adapter' if adapter else 'A full model'} after {measured.total_steps} steps of "
            "supervised fine-tuning.",
            "",
            "## What was trained",
            "",
            *(f"- {sentence}" for sentence in (*base.scope, *measured.output_warnings)),
            *(f"- {sentence}" for sentence in _stops(base.tokenizer, ends)),
            "",
            "## Data",
            "",
            *data,
            "",
            "## Loss",
            "",
            *losses,
            "",
            "## Parameters",
            "",
            *(f"- {key}: {params[key]}" for key in sorted(params)),
            "",
            "## Software",
            "",
            *(f"- {name} {version}" for name, version in measured.software.items()),
            "",
        ]
    )


def _stops(tokenizer: Any, ends: tuple[int, ...]) -> Iterator[str]:
    if ends:
        texts = ", ".join(f"`{text}`" for text in tokenizer.convert_ids_to_tokens(list(ends)))
        yield f"Answers end in {texts}: stop there, as `generation_config.json` says."


_INPUTS = ("train.jsonl", "validation.jsonl")
