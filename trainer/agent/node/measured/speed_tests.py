"""The results of this node's speed tests, kept in its folder.

They are told with the node's facts, and run again when the hardware or the software has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainer.agent.storage.folder import NodeFolder, read_json, write_json
from trainer.protocol import GpuFacts, NodeFacts, ProtocolError, to_json
from trainer.protocol_parsing import parse_speed_test
from trainer.self_tests import SpeedTest

MODEL = "builtin/tiny-llama"
# (tokens of a sample, samples at a time, micro-batches): usual ones of short jobs. Those that need least
# memory come first, as the peak of a process never falls.
SHAPES = ((64, 8, 1), (256, 1, 8), (512, 4, 2))
MOST_STEPS = 100  # so that a training whose agent was killed ends soon


def trainings(gpu: GpuFacts) -> list[dict[str, Any]]:
    """Return every parameter of the trainings that test a GPU or slot."""
    shared = {
        "tuning": "lora",
        "quantization": "none",
        "precision": "float32" if gpu.model == "cpu" else "bfloat16",
        "lora_r": 16,
        "lora_alpha": 32,
        "gradient_checkpointing": False,
        "sharding": "none",
        "max_steps": MOST_STEPS,
    }
    sizes = ("tokens_per_sample", "per_device_batch_size", "gradient_accumulation_steps")
    return [
        {**shared, **dict(zip(sizes, shape, strict=True)), "effective_batch_size": shape[1] * shape[2]}
        for shape in SHAPES
    ]


def kinds(gpus: Iterable[GpuFacts]) -> list[GpuFacts]:
    """Return the first GPU or slot of each model."""
    return list({gpu.model: gpu for gpu in reversed(list(gpus))}.values())[::-1]


def fingerprint(gpu: GpuFacts, cores: int, software: Mapping[str, str]) -> str:
    """Return a digest of all that a test's figures hang on."""
    hardware = (gpu.model, gpu.memory_bytes, cores)
    text = json.dumps([hardware, dict(software), MODEL, trainings(gpu)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def due(folder: NodeFolder, facts: NodeFacts) -> list[GpuFacts]:
    """Return a GPU or slot of each model whose test is due.

    It is if it is missing, failed, or is of another stack.
    """
    kept = _kept(folder)
    return [
        gpu
        for gpu in kinds(facts.gpus)
        if (found := kept.get(gpu.model)) is None
        or found["fingerprint"] != fingerprint(gpu, facts.cores, facts.software)
        or found["test"].problem
    ]


def keep(folder: NodeFolder, gpu: GpuFacts, facts: NodeFacts, test: SpeedTest) -> None:
    """Keep a test in place of the last one of its model. Raises OSError."""
    entry = {"fingerprint": fingerprint(gpu, facts.cores, facts.software), "test": to_json(test)}
    write_json(folder.speed_tests_file, {**(read_json(folder.speed_tests_file) or {}), gpu.model: entry})


def known(folder: NodeFolder, gpus: Sequence[GpuFacts]) -> tuple[SpeedTest, ...]:
    """The newest test of each model that the node has."""
    kept = _kept(folder)
    return tuple(kept[gpu.model]["test"] for gpu in kinds(gpus) if gpu.model in kept)


def _kept(folder: NodeFolder) -> dict[str, dict[str, Any]]:
    """The kept tests by GPU model; one that cannot be read counts as never run."""
    found = {}
    for model, entry in (read_json(folder.speed_tests_file) or {}).items():
        try:
            found[model] = {"fingerprint": entry["fingerprint"], "test": parse_speed_test(entry["test"])}
        except (ProtocolError, KeyError, TypeError):
            continue
    return found
