"""One kind of model: trained, trained by a plain loop, resumed, read again."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.trainer.runs import Run
from tests.trainer.train.base import plain_loop
from tests.trainer.train.base.architectures import save
from tests.trainer.train.base.shrunk import POSITIONS, shrunk

STEPS, BATCH, SEED = 6, 4, 7
_CHOSEN = random.Random(5)
_WORDS = [
    "ship",
    "sails",
    "north",
    "again",
    "under",
    "grey",
    "cloud",
    "while",
    "seven",
    "men",
    "count",
    "coins",
    "and",
    "sing",
    "of",
    "rain",
]


def sentences(count: int, least: int, most: int) -> list[dict[str, str]]:
    """Rows of prompt and completion, of so many words each."""

    def said() -> str:
        return " ".join(_CHOSEN.choice(_WORDS) for _ in range(_CHOSEN.randint(least, most)))

    return [{"prompt": f"{said()}\n", "completion": said()} for _ in range(count)]


ROWS, VALIDATION = sentences(14, 1, 6), sentences(4, 1, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What came of it; figures are differences, None where the training was refused."""

    reason: str = ""
    scope: tuple[str, ...] = ()
    adapted: tuple[str, ...] = ()  # names of layers, once each
    loss: float | None = None  # the largest of six steps
    resumed: float | None = None
    read: float | None = None  # of the evaluation of the output, read again
    warnings: tuple[str, ...] = ()


def examine(
    kind: str,
    tuning: str,
    folder: Path,
    *,
    rows: Sequence[dict[str, str]] = ROWS,
    micro: int = BATCH,
    **sizes: Any,
) -> Findings:
    """Train a tiny model of this kind in a new folder.

    micro: rows that go through the model at a time, padded to the longest of them.
    """
    model = save(shrunk(kind, **sizes), folder / "base", POSITIONS)
    run = Run(
        path=folder / "run",
        models_dir=folder,
        model=str(model),
        model_roots=(folder,),
        checkpoint_every_s=0.0,
        params={
            "tuning": tuning,
            "precision": "float32",
            "tokens_per_sample": 320,
            "max_steps": STEPS,
            "per_device_batch_size": micro,
            "gradient_accumulation_steps": BATCH // micro,
            "seed": SEED,
            "learning_rate": 1e-2 if tuning == "lora" else 1e-3,
            "gradient_checkpointing": False,
            **({"lora_r": 4, "lora_alpha": 8} if tuning == "lora" else {}),
        },
    )
    result = run.write(rows=list(rows), validation=VALIDATION).train()
    if result["outcome"] != "succeeded":
        return Findings(reason=result["reason"])
    output = run.path / "output"
    last = run.path / "checkpoints" / f"step-{STEPS - 1}"
    layers = plain_loop.adapted_layers(last) if tuning == "lora" else set()
    again = replace(run, path=folder / "again")
    resumed = again.write(
        rows=list(rows), validation=VALIDATION, resume=run.path / "checkpoints" / f"step-{STEPS - 2}"
    ).train()
    card = (output / "README.md").read_text().partition("## What was trained")[2].partition("##")[0]
    compared = {**run.losses, 0: result["eval_loss"]}
    return Findings(
        reason="" if resumed["outcome"] == "succeeded" else f"not resumed: {resumed['reason']}",
        scope=tuple(line.removeprefix("- ") for line in card.splitlines() if line.startswith("- ")),
        adapted=tuple(sorted({name.rpartition(".")[2] for name in layers})),
        loss=max(abs(run.losses[step + 1] - loss) for step, loss in enumerate(_plain(run, tuning, layers))),
        resumed=max(
            abs(compared[step] - loss)
            for step, loss in {**again.losses, 0: resumed["eval_loss"] or 0.0}.items()
        ),
        read=abs(_read(run, tuning) - result["eval_loss"]),
        warnings=tuple(result["output_warnings"]),
    )


def _plain(run: Run, tuning: str, layers: set[str]) -> list[float]:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(run.model)
    if tuning == "lora":
        model = plain_loop.with_adapters(model, layers, 4, 8, SEED)
    rate = run.params["learning_rate"]
    return plain_loop.train(model, _tokens(run, "train"), steps=STEPS, batch=BATCH, rate=rate, seed=SEED)


def _read(run: Run, tuning: str) -> float:
    """The evaluation of the output as its users read it."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    output = run.path / "output"
    tuned = AutoModelForCausalLM.from_pretrained(run.model if tuning == "lora" else output)
    if tuning == "lora":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of keys that found no place, which the evaluation tells
            tuned = PeftModel.from_pretrained(tuned, output)
    return plain_loop.evaluate(tuned, _tokens(run, "validation"))


def _tokens(run: Run, name: str) -> list[plain_loop.Row]:
    from trainer.train.data.store import Tokens

    return [(sample.ids.tolist(), sample.labels.tolist()) for sample in Tokens(run.path / "tokens", name)]
