"""RUN_DIR/spec.json as typed values."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trainer.protocol import ProtocolError, Spec
from trainer.protocol_parsing import parse_spec
from trainer.recipes import SFT, Binds, can_shard
from trainer.train.errors import TrainError

# Values of a submission that a checkpoint's identity states by what follows from them: the rows of a
# step, the number of steps, the tuning.
STATED_OTHERWISE = frozenset({"effective_batch_size", "epochs", "max_steps", "quantization"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """The recipe's parameters that the training process uses.

    `trainer.recipes` gives their meaning.
    """

    tuning: str
    precision: str
    tokens_per_sample: int
    effective_batch_size: int | None
    per_device_batch_size: int
    gradient_accumulation_steps: int
    learning_rate: float
    epochs: float
    max_steps: int | None
    seed: int
    lora_r: int
    lora_alpha: int
    target_modules: str
    gradient_checkpointing: bool
    sharding: str | None

    @classmethod
    def of(cls, params: dict[str, Any]) -> TrainingSettings:
        """Return the parameters as resolved by the portal.

        Absent ones get the recipe's default. Raises TrainError.
        """
        values = {field.name: _clean(field.name, params.get(field.name)) for field in fields(cls)}
        if params.get("effective_batch_size") is None:
            values["effective_batch_size"] = None
        return cls(**values)

    @property
    def identity(self) -> dict[str, Any]:
        """The values that decide what is learnt: a checkpoint of others is not resumed."""
        names = (name for name in SFT.binding(Binds.SUBMIT) if name not in STATED_OTHERWISE)
        return {name: getattr(self, name) for name in names}


def _clean(name: str, value: Any) -> Any:
    param = SFT.params[name]
    if value is None:
        return param.default
    try:
        return param.clean(value)
    except ValueError as wrong:
        raise TrainError(f"The parameter {name} {wrong}, not {value!r}.") from wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """All that one training process needs to know.

    batch: samples per optimiser step over all processes.
    """

    run_dir: Path
    spec: Spec
    settings: TrainingSettings
    models_dir: Path
    threads: int
    device: str
    offline: bool
    resume_dir: Path | None
    model_roots: tuple[Path, ...] = ()
    tokens_dir: Path | None = None  # where an earlier attempt may have left tokens of the same data

    @property
    def processes(self) -> int:
        """Training processes of all nodes: one for each GPU or CPU slot."""
        return len(self.spec.gpus) * self.spec.nodes

    @property
    def batch(self) -> int:
        settings = self.settings
        return settings.per_device_batch_size * settings.gradient_accumulation_steps * self.processes

    def input(self, name: str) -> Path | None:
        """The path of an input file, if it was given."""
        path = self.run_dir / "inputs" / name
        return path if path.is_file() else None


def read_order(run_dir: Path) -> TrainingSpec:
    """RUN_DIR/spec.json. Raises TrainError that names what is wrong."""
    try:
        raw = json.loads((run_dir / "spec.json").read_text(encoding="utf-8"))
        spec, local = parse_spec(raw["spec"]), raw["local"]
        order = TrainingSpec(
            run_dir=run_dir,
            spec=spec,
            settings=TrainingSettings.of(spec.params),
            models_dir=Path(local["models_dir"]),
            threads=int(local["threads"]),
            device=str(local["device"]),
            offline=bool(local["offline"]),
            resume_dir=Path(local["resume_dir"]) if local.get("resume_dir") else None,
            tokens_dir=Path(local["tokens_dir"]) if local.get("tokens_dir") else None,
            model_roots=tuple(Path(root) for root in local.get("model_roots", ())),
        )
    except (OSError, ValueError, KeyError, TypeError, ProtocolError) as wrong:
        raise TrainError(f"{run_dir.name}/spec.json cannot be used: {wrong!r}") from wrong
    check(order)
    return order


def check(order: TrainingSpec) -> None:
    """Raise TrainError for values that no training may have together."""
    settings = order.settings
    if order.spec.recipe != SFT.name:
        raise TrainError(f"This trainer knows the recipe {SFT.name}, not {order.spec.recipe!r}.")
    if not order.spec.gpus or order.device not in ("cpu", "cuda"):
        raise TrainError("spec.gpus must name at least one GPU or slot, and local.device be cpu or cuda.")
    if settings.effective_batch_size not in (None, order.batch):
        raise TrainError(
            f"effective_batch_size is {settings.effective_batch_size}, but per_device_batch_size "
            f"{settings.per_device_batch_size} × gradient_accumulation_steps "
            f"{settings.gradient_accumulation_steps} × {order.processes} GPUs make {order.batch}."
        )
    if settings.tuning == "qlora" and order.device == "cpu":
        raise TrainError("The tuning qlora needs a GPU; choose lora to train on CPU slots.")
    if settings.sharding == "fsdp" and not can_shard(settings.tuning, settings.precision):
        raise TrainError("fsdp goes with full or lora in bfloat16 or float32; choose those, or ddp.")
