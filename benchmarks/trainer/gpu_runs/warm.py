"""A process that has imported the trainer and forks one training after the other.

    python -m benchmarks.trainer.gpu_runs.warm CACHE

Reads folders of runs from standard input, one a line, and answers each with its exit code (negative for a
signal) once its process has gone. Importing takes longer than most of these trainings. The process that forks
has never touched the GPU, so that each training opens its own context and its memory is counted as in a
process of its own; `measure.py` repeats some in one to show it.

Weights that are made once for a model of 4 bits, unquantised, are kept in CACHE and linked from there.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.recipes import DEFAULT_RECIPE

LONGEST_S = 75  # of one training
CACHE_BYTES = 30e9
ARCHITECTURES = ("llama", "qwen2", "qwen3", "mistral", "granite", "gpt_neox")


def main(cache: Path) -> None:
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # else the question alone would open the driver
    import_all()
    import torch

    if torch.cuda.is_initialized():
        raise SystemExit("importing opened the GPU: nothing can be forked")
    from trainer.train.base import random_weights

    random_weights.store = _kept(random_weights.store, cache)
    print("ready", flush=True)
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            _train(Path(line.strip()))
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def import_all() -> None:
    import torch

    real = torch.cuda.get_device_capability
    torch.cuda.get_device_capability = _capability  # bitsandbytes asks as it is imported
    try:
        for name in ("trainer.train.process", DEFAULT_RECIPE.entry, "peft", "transformers.integrations"):
            importlib.import_module(name)
    finally:
        torch.cuda.get_device_capability = real
    for name in ARCHITECTURES:
        importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def _capability(_device: Any = None) -> tuple[int, int]:
    """Compute capability of the first GPU, as the driver's management library has it."""
    from trainer.agent.node.gpus import nvml_library

    nvml = nvml_library()
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(nvml.nvmlDeviceGetHandleByIndex(0))
    return int(major), int(minor)


def _train(run: Path) -> None:
    """Become the training of a folder; never returns."""
    from trainer.train.process import StopSignal, leave, run_process

    os.setsid()
    os.chdir(run)
    log = os.open(run / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.alarm(LONGEST_S)
    leave(run_process(run, StopSignal(), time.monotonic()))


def _kept(store: Callable[..., None], cache: Path) -> Callable[..., None]:
    """Make a model's weights once, and link them from then on."""

    def linked(source: str, order: Any, device: Any, dtype: Any) -> None:
        kept = cache / f"{order.spec.model.replace('/', '--')} {dtype}"
        if not kept.is_dir():
            store(source, order, device, dtype)
            aside = kept.with_name(f"{kept.name}.aside")
            shutil.rmtree(aside, ignore_errors=True)
            shutil.copytree(source, aside, copy_function=os.link)
            aside.rename(kept)
            _limit(cache)
            return
        for file in kept.iterdir():
            (Path(source) / file.name).unlink(missing_ok=True)
            os.link(file, Path(source) / file.name)

    return linked


def _limit(cache: Path) -> None:
    """Delete the oldest weights beyond the cache's size, but never the newest."""
    folders = sorted(cache.iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    size = {folder: sum(file.stat().st_size for file in folder.iterdir()) for folder in folders}
    for folder in folders[:-1]:
        if sum(size.values()) <= CACHE_BYTES:
            return
        del size[folder]
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
