"""Outputs of a training in RUN_DIR/output.

They are adapter or model, tokenizer, model card and metrics.
"""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Any

import torch

from trainer.checkpoint import describe, digest
from trainer.protocol import to_json
from trainer.train.base.models import Loaded
from trainer.train.base.random_weights import is_random
from trainer.train.events import RunFigures, metrics_csv
from trainer.train.settings import TrainingSpec

_PACKAGES = ("torch", "transformers", "peft", "accelerate")


def software() -> dict[str, str]:
    """Versions of what trained."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {**versions, "python": platform.python_version()}


def write(
    order: TrainingSpec,
    base: Loaded,
    weights: dict[str, torch.Tensor],
    measured: RunFigures,
    rows: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Write the folder and list its files.

    weights: the adapter's by name, or all of the model's.
    Models of random weights leave only their figures: nobody could use the weights.
    """
    folder = order.run_dir / "output"
    folder.mkdir(parents=True, exist_ok=True)
    if not is_random(order):
        _save_model(folder, order, base, weights)
    (folder / "metrics.csv").write_text(metrics_csv(rows), encoding="utf-8")
    (folder / "README.md").write_text(_card(order, base.scope, measured), encoding="utf-8")
    return [to_json(file) for file in describe(folder)]


def _save_model(folder: Path, order: TrainingSpec, base: Loaded, weights: dict[str, torch.Tensor]) -> None:
    model = base.model
    if order.settings.method == "full":
        dtype = getattr(torch, order.settings.precision)
        learnt = dict(model.named_parameters()).keys()
        stored = {name: value.to(dtype) if name in learnt else value for name, value in weights.items()}
        model.save_pretrained(folder, state_dict=stored)
        model.config.dtype = dtype  # save_pretrained noted that of the master weights
        model.config.save_pretrained(folder)
    else:
        model.save_pretrained(folder, state_dict=weights, save_embedding_layers=False)
    base.tokenizer.save_pretrained(folder)


def _card(order: TrainingSpec, scope: tuple[str, ...], measured: RunFigures) -> str:
    settings, adapter = order.settings, order.settings.method != "full"
    base = Path(order.spec.model).name if Path(order.spec.model).is_absolute() else order.spec.model
    names = [name for name in order.spec.params if order.spec.params[name] is not None]
    data = [f"- {name}: SHA-256 `{digest(path)}`" for name in _INPUTS if (path := order.input(name))]
    losses = [
        f"- training: from {measured.first_loss or 0:.4f} to {measured.final_loss or 0:.4f}",
        *([] if measured.eval_loss is None else [f"- validation: {measured.eval_loss:.4f}"]),
    ]
    return "\n".join(
        [
            "---",
            f"base_model: {base}",
            f"library_name: {'peft' if adapter else 'transformers'}",
            "pipeline_tag: text-generation",
            "---",
            "",
            f"# {base}, fine-tuned ({settings.method})",
            "",
            f"{'A LoRA adapter' if adapter else 'A full model'} after {measured.total_steps} steps of "
            "supervised fine-tuning.",
            "",
            "## What was trained",
            "",
            *(f"- {sentence}" for sentence in scope),
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
            *(f"- {name}: {order.spec.params[name]}" for name in sorted(names)),
            "",
            "## Software",
            "",
            *(f"- {name} {version}" for name, version in measured.software.items()),
            "",
        ]
    )


_INPUTS = ("train.jsonl", "validation.jsonl")
