"""RUN_DIR/spec.json as typed values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from trainer.protocol import ProtocolError, Spec
from trainer.protocol_parsing import parse_spec
from trainer.recipes import RECIPES, ParamError, Recipe, TrainingSettings, can_shard
from trainer.train.errors import TrainError


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
    def recipe(self) -> Recipe:
        return RECIPES[self.spec.recipe]

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
            settings=_settings(spec),
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


def _settings(spec: Spec) -> TrainingSettings:
    """The order's parameters. Raises TrainError, also for an unknown recipe."""
    if spec.recipe not in RECIPES:
        known = ", ".join(RECIPES)
        raise TrainError(f"This trainer knows the recipes {known}, not {spec.recipe!r}; update the node.")
    try:
        return RECIPES[spec.recipe].settings_of(spec.params)
    except ParamError as wrong:
        [(name, why)] = wrong.fields.items()
        raise TrainError(f"The parameter {name} {why}, not {spec.params[name]!r}.") from wrong


def check(order: TrainingSpec) -> None:
    """Raise TrainError for values that no training may have together."""
    settings = order.settings
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
