"""Run directories as the agent would write them.

Their tiny trainings take a second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_S = 300  # with what hangs; a busy machine needs minutes for seconds
ROWS = [
    {"prompt": f"What follows {word}?\n", "completion": f"After {word} comes {word.upper()}."}
    for word in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
]
CHATS = [
    {"messages": [{"role": "user", "content": word}, {"role": "assistant", "content": word * 2}], "id": word}
    for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")
]
PARAMS = {
    "tuning": "lora",
    "precision": "float32",
    "tokens_per_sample": 48,
    "learning_rate": 0.005,
    "lora_r": 4,
    "lora_alpha": 8,
    "max_steps": 6,
    "per_device_batch_size": 4,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False,
    "seed": 7,
}


@dataclass
class Run:
    """One RUN_DIR. `train` runs in this process, `start` as the agent does."""

    path: Path
    models_dir: Path
    params: dict[str, Any] = field(default_factory=lambda: dict(PARAMS))
    model: str = "builtin/tiny-llama"
    slots: int = 1
    device: str = "cpu"
    offline: bool = True
    checkpoint_every_s: float = 3600.0
    node: dict[str, Any] = field(default_factory=dict)
    model_roots: tuple[Path, ...] = ()

    def write(
        self,
        rows: list[Any] | None = None,
        validation: list[Any] | None = None,
        resume: Path | None = None,
        tokens: Path | None = None,
    ) -> Run:
        """spec.json and inputs/."""
        inputs = self.path / "inputs"
        inputs.mkdir(parents=True, exist_ok=True)
        for name, lines in (("train", rows or ROWS), ("validation", validation)):
            if lines:
                (inputs / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        spec = {
            "job": "job",
            "attempt": "attempt",
            "claim": "claim",
            "fence": 1,
            "recipe": "sft",
            "entry": "trainer.train.entries.sft",
            "model": self.model,
            "params": self.params,
            "gpus": list(range(self.slots)),
            "resources": {
                "gpus_per_node": self.slots,
                "cores": self.slots,
                "memory_bytes": 2**30,
                "grace_s": 5,
            },
            "checkpoint_every_s": self.checkpoint_every_s,
            **self.node,
        }
        local = {
            "models_dir": str(self.models_dir),
            "threads": 1,
            "device": self.device,
            "model_roots": [str(root) for root in self.model_roots],
            "offline": self.offline,
            "resume_dir": str(resume) if resume else None,
            "tokens_dir": str(tokens) if tokens else None,
        }
        (self.path / "spec.json").write_text(json.dumps({"spec": spec, "local": local}))
        return self

    def start(self, *wrapper: str) -> subprocess.Popen[str]:
        """`python -m trainer.run RUN_DIR`."""
        command = [sys.executable, *(wrapper or ("-m", "trainer.run")), str(self.path)]
        return subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def finish(self, *wrapper: str) -> int:
        """Start and wait; the exit code."""
        process = self.start(*wrapper)
        output, _ = process.communicate(timeout=PATIENCE_S)
        print(output)
        return process.returncode

    def train(self, stop: Any = None) -> dict[str, Any]:
        """Train in this process; result.json."""
        from trainer.train.process import run_process

        (self.path / "result.json").unlink(missing_ok=True)
        run_process(self.path, stop or NeverStop(), time.monotonic())
        return self.result

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.path / "result.json").read_text())

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Events of one kind, in order; a line still being written is left out."""
        path = self.path / "events.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def identity(self, step: int) -> dict[str, Any]:
        """The identity of this training as the checkpoint of a step notes it."""
        return json.loads((self.path / "checkpoints" / f"step-{step}" / "state.json").read_text())["identity"]

    @property
    def losses(self) -> dict[int, float]:
        """Loss by step; of a resumed run the later report counts."""
        return {event["step"]: event["loss"] for event in self.events("step")}

    def await_event(self, kind: str, count: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Wait until so many events of a kind were written."""
        end = time.monotonic() + timeout_s
        while len(self.events(kind)) < count:
            assert not (self.path / "result.json").exists(), self.result["reason"]
            assert time.monotonic() < end, f"no {count} events of {kind} in {timeout_s} s"
            time.sleep(0.01)


class NeverStop:
    """Nobody asks to stop."""

    requested = False


class StopAtLook:
    """A stop request that arrives between two steps.

    The loop looks once before each step.
    """

    def __init__(self, look: int) -> None:
        self.left = look

    @property
    def requested(self) -> bool:
        self.left -= 1
        return self.left <= 0
