"""Short trainings on this machine's first GPU, with rates and peaks, as executions to import.

    .venv-train/bin/python -m benchmarks.trainer.gpu_runs.measure OUT.csv [--seconds 450] [--series 0]

Each training is a claim of its own as the agent would prepare it (`trainer/agent/claims/prepare.py`): the
same folder, environment and settings, catalogued shapes with random weights. Most are forked from a process
that has imported the trainer (`warm.py`); some are run again as `python -m trainer.run`. One at a time uses
the GPU. The file is whole after each training. `--cpu` tries all this out on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.trainer.gpu_runs.plan import OTHER_MODELS, Planned, Series, plan
from benchmarks.trainer.gpu_runs.rows import Table, result_of, row
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.config_json import config_json
from trainer.agent.claims.prepare import RunPreparation, prepare
from trainer.agent.executors.base import Launch
from trainer.agent.node.discovery import usable_memory_bytes
from trainer.agent.node.gpu_idle import busy
from trainer.agent.node.gpus import driver_facts, find_gpus
from trainer.agent.node.network import Site
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import RANDOM_MODEL, GpuFacts, Spec
from trainer.recipes import DEFAULT_RECIPE

CATALOGUE = shipped_catalogue()
ROWS = 64
LETTERS = "abcdefghijklmnopqrstuvwxyz "
MEDIAN, SPREAD = 0.25, 0.8  # of the lengths of varied rows: shares of the limit, log-normal
LEAVES_WITHIN_S = 10.0
TAKES_S = 12.0  # about what the last training may take beyond the time
SERIES = (
    Series(),
    Series(
        seed=2,
        tunings=("lora", "full", "lora", "qlora", "full"),
        longest_step_s=0.8,
        train_s=0.8,
        own_rounds=0,
    ),
    Series(seed=3, longest_step_s=1.2, train_s=1.0, own_rounds=0),
    Series(
        seed=4,
        tunings=("lora", "full"),
        longest_step_s=3.0,
        own_rounds=0,
        precisions=("float32",),
        varied_share=0,
    ),
    Series(
        seed=5,
        tunings=("qlora", "lora", "qlora", "full"),
        longest_step_s=1.0,
        train_s=0.8,
        own_rounds=0,
        varied_share=0,
        models=OTHER_MODELS,
        lengths=(384, 768, 1536, 3072, 6144),
        batches=(1, 3, 6, 12, 24),
        accumulations=(1, 1, 1, 3),
        ranks=(4, 32, 128),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument(
        "--series",
        type=int,
        default=0,
        help="1: shorter steps, fewer of qlora; 2: short steps; 3: float32; 4: other models and sizes",
    )
    parser.add_argument("--most", type=int, default=10_000, help="trainings")
    parser.add_argument("--folder", type=Path, help="for runs and weights: up to 50 GB")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--keep-logs", type=Path, help="folder for the logs of trainings that failed")
    given = parser.parse_args()
    ends = time.monotonic() + given.seconds
    given.out = given.out.absolute()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        bench = Bench(Path(folder), given.cpu, given.keep_logs)
        print(f"{bench.gpu_model}, {bench.facts}", flush=True)
        table = Table(given.out)
        for number, planned in enumerate(plan(bench.gpu_model, CATALOGUE, SERIES[given.series])):
            if time.monotonic() > ends - TAKES_S or number >= given.most:
                break
            for process in ("forked", "own") if planned.own else ("forked",):
                began = time.monotonic()
                table.add(cells := bench.measured(planned, process))
                print(_line(cells, time.monotonic() - began), flush=True)
            if len(table.rows) > 2 and all(cells["status"] == "failed" for cells in table.rows):
                break
        bench.close()


class Bench:
    """The node's folders, its GPU, and the process that forks trainings."""

    def __init__(self, folder: Path, cpu: bool, logs: Path | None) -> None:
        cores = os.cpu_count() or 1
        found = () if cpu else find_gpus(0)
        self.gpu = found[0] if found else GpuFacts(index=0, model="cpu", memory_bytes=4 * 2**30, uuid="")
        sheet = CATALOGUE.gpu(self.gpu.model)
        self.gpu_model, self.capacity = sheet.gpu_model, int(sheet.memory_bytes)
        self.facts = {"told": self.gpu.model, "memory_bytes": self.gpu.memory_bytes, **driver_facts()}
        self._logs = logs
        (folder / "cache").mkdir()
        node = NodeFolder(folder / "node")
        for place in (node.runs, node.models):
            place.mkdir(parents=True, exist_ok=True)
        self._workshop = RunPreparation(
            folder=node,
            command=[sys.executable, "-m", "trainer.run"],
            gpus=(self.gpu,),
            cores=cores,
            memory_bytes=usable_memory_bytes(),
            site=Site(portal=""),
        )
        self._warm = self._started(folder)
        self._number = 0

    def measured(self, planned: Planned, process: str) -> dict[str, Any]:
        """The row of one training."""
        self._number += 1
        run = self._workshop.folder.runs / f"run-{self._number}"
        run.mkdir()
        write_rows(run / "inputs", planned)
        launch = prepare(self._spec(planned, run.name), self._workshop, run)
        self._await_free()
        code = self._forked(run) if process == "forked" else _own(launch)
        cells = row(planned, result_of(run, code), process, self.capacity, _origin())
        if self._logs is not None and cells["status"] == "failed":
            self._logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(run / "log.txt", self._logs / f"{run.name}.txt")
        shutil.rmtree(run)
        return cells

    def close(self) -> None:
        """End the process that forks."""
        assert self._warm.stdin is not None
        self._warm.stdin.close()
        self._warm.wait()

    def _started(self, folder: Path) -> subprocess.Popen[str]:
        """Start it in the environment of a training."""
        run = self._workshop.folder.runs / "warm"
        run.mkdir()
        planned = next(plan(self.gpu_model, CATALOGUE, SERIES[0]))
        launch = prepare(self._spec(planned, "warm"), self._workshop, run)
        command = [sys.executable, "-m", "benchmarks.trainer.gpu_runs.warm", str(folder / "cache")]
        warm = subprocess.Popen(
            command,
            cwd=run,
            env=dict(launch.environment),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert warm.stdout is not None
        if warm.stdout.readline() != "ready\n":
            raise SystemExit("the trainer cannot be imported")
        return warm

    def _forked(self, run: Path) -> int:
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        self._warm.stdin.write(f"{run}\n")
        self._warm.stdin.flush()
        return int(self._warm.stdout.readline())

    def _spec(self, planned: Planned, name: str) -> Spec:
        config = planned.config
        built_in = config.model_name.startswith("builtin/")
        names = (
            *("tuning", "precision", "quantization", "lora_r", "lora_alpha", "tokens_per_sample"),
            *("per_device_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "sharding"),
            "target_modules",
        )
        params = {key: getattr(config, key) for key in names if getattr(config, key) is not None}
        return Spec(
            job=name,
            attempt=name,
            claim=name,
            fence=1,
            recipe=DEFAULT_RECIPE.name,
            entry=DEFAULT_RECIPE.entry,
            model=config.model_name if built_in else RANDOM_MODEL + config.model_name,
            params={
                **params,
                "effective_batch_size": config.effective_batch_size,
                "max_steps": planned.steps,
            },
            gpus=(self.gpu.index,),
            resources=self._workshop.share(1, TAKES_S),
            checkpoint_every_s=3600.0,
            shape={} if built_in else config_json(CATALOGUE.model(config.model_name)),
        )

    def _await_free(self) -> None:
        """The memory of the training before is freed shortly after its process is gone."""
        until = time.monotonic() + LEAVES_WITHIN_S
        while self.gpu.uuid and busy([self.gpu]) and time.monotonic() < until:
            time.sleep(0.05)


def _own(launch: Launch) -> int:
    with (launch.run / "log.txt").open("ab") as log:
        return subprocess.run(
            list(launch.command),
            cwd=launch.run,
            env=dict(launch.environment),
            stdout=log,
            stderr=log,
            check=False,
        ).returncode


def write_rows(inputs: Path, planned: Planned) -> None:
    """Write rows of letters, longer than a sample, or of many lengths."""
    chance, limit = random.Random(0), planned.config.tokens_per_sample
    inputs.mkdir(parents=True)
    with (inputs / "train.jsonl").open("w", encoding="utf-8") as stream:
        for size in _sizes(chance, limit, planned.varied):
            text = "".join(chance.choices(LETTERS, k=size))
            stream.write(json.dumps({"prompt": "Repeat\n", "completion": text}) + "\n")


def _sizes(chance: random.Random, limit: int, varied: bool) -> Sequence[int]:
    if not varied:
        return [limit + 64] * ROWS
    draw: Callable[[], float] = lambda: MEDIAN * chance.lognormvariate(0.0, SPREAD)  # noqa: E731
    return [max(32, round(limit * min(1.0, draw()))) for _ in range(ROWS)]


def _origin() -> str:
    return f"benchmarks/trainer/gpu_runs {datetime.now(UTC):%Y-%m-%d}"


def _line(cells: dict[str, Any], took_s: float) -> str:
    flags = "checkpointing" if cells["gradient_checkpointing"] else "-"
    size = f"{cells['per_device_batch_size']}×{cells['tokens_per_sample']}"
    peak = cells.get("peak_memory_bytes", 0) / 2**30
    return (
        f"{cells['model_name']:32} {cells['method']:5} {size:>8} ×{cells.get('gradient_accumulation_steps')}"
        f" {cells['precision']:8} {flags:13} {cells['process']:6} {cells['status']:6}"
        f" {cells.get('tokens_per_second', '-'):>8} tokens/s {peak:6.2f} GiB, {took_s:5.1f} s"
        f" {cells.get('reason', '')[:120] if cells['status'] == 'failed' else ''}"
    )


if __name__ == "__main__":
    main()
