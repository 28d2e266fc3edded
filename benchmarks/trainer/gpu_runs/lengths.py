"""Seconds of a step where samples have many lengths, in variants of the trainer.

    .venv-train/bin/python -m benchmarks.trainer.gpu_runs.lengths [--steps 48] [--only TEXT] [--cpu]

Each variant trains the same model on the same rows in a process of its own, forked from one that has imported
the trainer. The rows are few, so that from the second epoch on no length is new: "new" are the steps of the
first epoch but its first, "known" those after it. "Whole" are steps of rows of full length. Before that,
attention alone: its first call of a shape (new) and the median of later ones (known), with each kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.trainer.gpu_runs.measure import LETTERS
from benchmarks.trainer.gpu_runs.warm import import_all
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.config_json import config_json

ROWS, LONGEST_S = 32, 100
IGNORED = -100
COMMON = {"precision": "bfloat16", "learning_rate": 1e-4, "seed": 1, "epochs": 1.0}
ADAPTER = {"tuning": "lora", "lora_r": 16, "lora_alpha": 32}
CASES: dict[str, dict[str, Any]] = {
    "llama 1b lora 4×1024": {
        "model": "meta-llama/Llama-3.2-1B",
        **ADAPTER,
        "tokens_per_sample": 1024,
        "per_device_batch_size": 4,
        "gradient_accumulation_steps": 1,
        "gradient_checkpointing": False,
    },
    "granite lora 1×2048×2": {
        "model": "ibm-granite/granite-3.1-2b-base",
        **ADAPTER,
        "tokens_per_sample": 2048,
        "per_device_batch_size": 1,
        "gradient_accumulation_steps": 2,
        "gradient_checkpointing": True,
    },
}


def _as_it_is() -> None:
    pass


def _with_cudnn(on: bool) -> None:
    import torch

    from trainer.train import sft

    sft.choose_plans = lambda *_: torch.backends.cuda.enable_cudnn_sdp(on)  # type: ignore[attr-defined]


def _to_64() -> None:
    from torch.nn.functional import pad as padded

    from trainer.train import loop

    collate = loop.collate  # type: ignore[attr-defined]

    def rounded(samples: Any, pad: int, device: Any) -> Any:
        batch = collate(samples, pad, device)
        more = (0, -batch.ids.shape[1] % 64)
        return type(batch)(padded(batch.ids, more, value=pad), padded(batch.labels, more, value=IGNORED))

    loop.collate = rounded  # type: ignore[attr-defined]
    _with_cudnn(True)


def _plain_segments() -> None:
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:False"


VARIANTS: dict[str, Callable[[], None]] = {
    "as it is": _as_it_is,
    "with cudnn": partial(_with_cudnn, True),
    "without cudnn": partial(_with_cudnn, False),
    "cudnn, to 64": _to_64,
    "plain segments": _plain_segments,
}
WHOLE = ("with cudnn", "without cudnn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--only", default="", help="variants whose name contains this")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args()
    ends = time.monotonic() + given.seconds
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"  # as the agent sets it
    os.environ["HF_HUB_OFFLINE"] = "1"
    if not given.cpu:
        import_all()
        _apart(attention_alone)
    with tempfile.TemporaryDirectory() as folder:
        for case, params in CASES.items():
            for name, change in VARIANTS.items():
                for whole in (False, True):
                    if given.only not in name or (whole and name not in WHOLE) or time.monotonic() > ends:
                        continue
                    run = Path(folder) / "run"
                    write(run, params, whole, 8 if whole else given.steps, given.cpu)
                    _apart(lambda run=run, change=change: _train(run, change))  # type: ignore[misc]
                    print(f"{case:24} {name:20} {line_of(run, whole)}", flush=True)
                    shutil.rmtree(run)


def write(run: Path, params: dict[str, Any], whole: bool, steps: int, cpu: bool) -> None:
    """The folder of a training."""
    limit = 64 if cpu else params["tokens_per_sample"]
    chance = random.Random(3)
    (run / "inputs").mkdir(parents=True)
    with (run / "inputs" / "train.jsonl").open("w", encoding="utf-8") as stream:
        for _ in range(ROWS):
            size = limit + 64 if whole else max(32, round(limit * chance.uniform(0.1, 0.9)))
            text = "".join(chance.choices(LETTERS, k=size))
            stream.write(json.dumps({"prompt": "Repeat\n", "completion": text}) + "\n")
    named = {**COMMON, **params, "max_steps": steps, "tokens_per_sample": limit}
    model = named.pop("model")
    spec = {
        **dict.fromkeys(("job", "attempt", "claim"), "x"),
        "fence": 1,
        "recipe": "sft",
        "entry": "trainer.train.sft",
        "model": "builtin/tiny-llama" if cpu else f"random/{model}",
        "params": named,
        "gpus": [0],
        "checkpoint_every_s": 3600.0,
        "shape": {} if cpu else config_json(shipped_catalogue().model(model)),
    }
    local = {"models_dir": str(run / "models"), "threads": 1, "offline": True}
    body = {"spec": spec, "local": {**local, "device": "cpu" if cpu else "cuda", "model_roots": []}}
    (run / "spec.json").write_text(json.dumps(body), encoding="utf-8")


def line_of(run: Path, whole: bool) -> str:
    """The times of the steps of a finished training, in a line."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    lines = (run / "events.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [event for event in map(json.loads, lines) if event["kind"] == "step"]
    took = [event["step_s"] for event in steps]
    if result["outcome"] != "succeeded" or len(took) < 2:
        return f"{result['outcome']}: {result['reason'][:150]}"
    epoch = ROWS // (result["tokens"] and _batch(run))
    peak = f"peak {result['peak_memory_bytes'] / 2**30:.2f} GiB, loss {result['final_loss']:.4f}"
    if whole:
        return (
            f"whole {statistics.median(took[1:]):.3f} s a step, {result['tokens_per_s']:.0f} tokens/s, {peak}"
        )
    new, known = took[1:epoch], took[epoch:]
    rate = sum(event["tokens_per_s"] * event["step_s"] for event in steps[epoch:]) / sum(known)
    last = took[2 * epoch :] or [0.0]
    return (
        f"first {took[0]:.2f} s, new {statistics.mean(new):.3f}, known {statistics.mean(known):.3f}"
        f" (last epoch {statistics.mean(last):.3f}, highest {max(last):.3f}), {rate:.0f} tokens/s, {peak}"
    )


def _batch(run: Path) -> int:
    params = json.loads((run / "spec.json").read_text(encoding="utf-8"))["spec"]["params"]
    return int(params["per_device_batch_size"] * params["gradient_accumulation_steps"])


def attention_alone() -> None:
    """Print what attention alone takes, by kernel."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def took(batch: int, size: int, masked: bool) -> float:
        shape = (batch, 32, size, 64)
        q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in "qkv")
        mask = torch.ones(batch, 1, size, size, device="cuda", dtype=torch.bool).tril() if masked else None
        torch.cuda.synchronize()
        begun = time.monotonic()
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=not masked)
        out.sum().backward()
        torch.cuda.synchronize()
        return 1e3 * (time.monotonic() - begun)

    kernels = {
        "chosen": None,
        "cudnn": [SDPBackend.CUDNN_ATTENTION],
        "flash": [SDPBackend.FLASH_ATTENTION],
        "efficient": [SDPBackend.EFFICIENT_ATTENTION],
    }
    for masked in (False, True):
        for name, some in kernels.items():
            if masked and name == "flash":
                continue
            for batch, size in ((1, 1000), (4, 1000), (4, 4000)):
                try:
                    with sdpa_kernel(some) if some else nullcontext():
                        took(batch, 64, masked)
                        new = [took(batch, size + shift, masked) for shift in (1, 2, 3, 64)]
                        known = [took(batch, size + shift, masked) for shift in (1, 2, 3, 64) for _ in "ab"]
                except RuntimeError as wrong:
                    print(f"attention {name}: {wrong}"[:150], flush=True)
                    break
                print(
                    f"attention {batch}×{size} {'masked' if masked else 'causal'} {name:9}"
                    f" new {statistics.median(new):8.2f} ms, known {statistics.median(known):8.2f} ms",
                    flush=True,
                )


def _apart(act: Callable[[], None]) -> None:
    process = os.fork()
    if process == 0:
        signal.alarm(LONGEST_S)
        try:
            act()
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.waitpid(process, 0)


def _train(run: Path, change: Callable[[], None]) -> None:
    from trainer.train.process import StopSignal, run_process

    os.chdir(run)
    log = os.open(run / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    change()
    run_process(run, StopSignal(), time.monotonic())


if __name__ == "__main__":
    main()
