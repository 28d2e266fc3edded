"""Everything that must lie ready before a training starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.claims.checkpoints import complete_files
from trainer.agent.errors import CheckpointGone, Declined
from trainer.agent.executors.base import Launch
from trainer.agent.node.environment import training_environment
from trainer.agent.node.network import Site
from trainer.agent.storage.folder import TOKENS, NodeFolder, write_json
from trainer.protocol import GpuFacts, Resources, Spec, to_json


@dataclass(slots=True, kw_only=True)
class RunPreparation:
    """How trainings run on this node.

    gpus: all GPUs or CPU slots, as the portal was last told: orders go by their numbers.
    local: they are this machine's, and trainings are told which are theirs.
    command: the run folder is appended.
    """

    folder: NodeFolder
    command: Sequence[str]
    gpus: Sequence[GpuFacts]
    cores: int
    memory_bytes: int
    site: Site
    local: bool = True
    offline: bool = True
    models_limit_bytes: int | None = None
    model_roots: Sequence[Path] = ()

    @property
    def slots(self) -> int:
        return len(self.gpus)

    @property
    def has_gpus(self) -> bool:
        return self.gpus[0].model != "cpu"

    def held(self, spec: Spec) -> Sequence[GpuFacts]:
        """The GPUs of a claim; none where it has CPU slots."""
        return [self.gpus[index] for index in spec.gpus] if self.has_gpus else []

    def share(self, gpus: int, run_s: float) -> Resources:
        """What a test of so many GPUs or slots is given.

        It is as much of the machine as they are of all.
        """
        return Resources(
            gpus_per_node=gpus,
            cores=max(1, self.cores * gpus // self.slots),
            memory_bytes=self.memory_bytes * gpus // self.slots,
            run_s=run_s,
            grace_s=0.0,
        )

    @property
    def threads(self) -> int:
        """Threads of one training process.

        One core is one slot; beside GPUs the cores are shared out.
        """
        return max(1, (self.cores - 1) // self.slots) if self.has_gpus else 1


def check_spec(spec: Spec, workshop: RunPreparation) -> None:
    """Raises Declined for GPUs that this node does not have."""
    if (
        not spec.gpus
        or len(set(spec.gpus)) < len(spec.gpus)
        or not set(spec.gpus) <= set(range(workshop.slots))
    ):
        raise Declined(f"spec.gpus names {list(spec.gpus)}; this node has 0 to {workshop.slots - 1}")


def resume_folder(spec: Spec, workshop: RunPreparation, run: Path) -> Path | None:
    """Return the folder of the checkpoint to resume from.

    Raises CheckpointGone if it was to lie on this node and does not.
    """
    if spec.resume is None:
        return None
    if spec.resume.stored == "portal":
        return run / "inputs" / "resume"
    old = workshop.folder.runs / spec.resume.claim
    if complete_files(old, spec.resume.step) is None:
        raise CheckpointGone(f"the checkpoint of step {spec.resume.step} is not on this node any more")
    return old / "checkpoints" / f"step-{spec.resume.step}"


def _earlier_tokens(spec: Spec, workshop: RunPreparation) -> str | None:
    """Where the attempt that left the checkpoint may have left its tokens, too."""
    return None if spec.resume is None else str(workshop.folder.runs / spec.resume.claim / TOKENS)


def prepare(spec: Spec, workshop: RunPreparation, run: Path) -> Launch:
    """Write RUN/spec.json and say how to start the training."""
    resume = resume_folder(spec, workshop, run)
    local = {
        "models_dir": str(workshop.folder.models),
        "model_roots": [str(root) for root in workshop.model_roots],
        "threads": workshop.threads,
        "device": "cuda" if workshop.has_gpus else "cpu",
        "offline": workshop.offline,
        "resume_dir": None if resume is None else str(resume),
        "tokens_dir": _earlier_tokens(spec, workshop),
    }
    (run / "tmp").mkdir(exist_ok=True)
    write_json(run / "spec.json", {"spec": to_json(spec), "local": local})
    environment = training_environment(
        run=run,
        models=workshop.folder.models,
        gpus=[gpu.uuid for gpu in workshop.held(spec)] if workshop.local else None,
        threads=workshop.threads,
        offline=workshop.offline,
        interface=workshop.site.interface() if spec.nodes > 1 else "",
    )
    return Launch(
        claim=spec.claim,
        command=[*workshop.command, os.fspath(run)],
        run=run,
        environment=environment,
        resources=spec.resources,
    )
