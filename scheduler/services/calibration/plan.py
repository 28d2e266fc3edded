"""The runs that calibrate a node.

They are short real trainings, chosen where predictions are least certain.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.config_json import UnknownSizes, config_json
from knowledge.core.domain.offline_node import is_downloaded
from knowledge.core.domain.types import Config, Unsupported
from portal.accounts.models import User
from scheduler.models import DatasetFile, Job, Node
from scheduler.services.files.uploads import store_file
from scheduler.services.idempotency import Creation, unkeyed
from scheduler.services.jobs.recommend import current_recommender
from scheduler.services.jobs.verbs import submit_job
from trainer.protocol import RANDOM_MODEL

STEPS = 6  # optimiser steps of a run: enough for a steady rate
ROWS = 64
LETTERS = "abcdefghijklmnopqrstuvwxyz "
LARGEST_SHARE = 0.1  # of the budget that the steps of one run may take
# Random weights of real architectures: throughput does not hang on their values, and nothing is downloaded.
CPU_MODELS = (
    "builtin/tiny-llama",
    "builtin/tiny-qwen",
    f"{RANDOM_MODEL}smollm2-135m",
    f"{RANDOM_MODEL}pythia-160m",
)
GPU_MODELS = tuple(
    RANDOM_MODEL + name
    for name in (
        "smollm2-135m",
        "qwen2.5-0.5b",
        "llama3.2-1b",
        "granite-3.1-2b",
        "llama3.2-3b",
        "llama3.1-8b",
    )
)
BYTES_PER_TOKEN = 6  # more than any tokenizer packs on average, so that every row is cut at the limit


NOT_HELD = "it does not hold that and may not download it (--online)"


class CannotCalibrate(ValueError):
    """The node cannot be calibrated; the message says why."""


def plan(*, node: Node, models: Sequence[str], count: int, budget_s: float) -> list[Config]:
    """Return the configurations to run for the node's GPU.

    Each is within a small part of the budget.
    models: none for those that suit the GPU.
    Raises CannotCalibrate and UnknownModel.
    """
    gpu = node.gpus.order_by("index").first()
    recommender = current_recommender()
    pools = recommender.inventory.pools
    pool = next((pool for pool in pools if gpu and pool.gpu_model == gpu.model), None)
    if pool is None:
        raise CannotCalibrate(f"{node.name} offers no GPU and no slot")
    if lacking := [model for model in models if is_downloaded(model) and not _holds(node, model)]:
        raise CannotCalibrate(f"{node.name} cannot load {', '.join(lacking)}: {NOT_HELD}")
    return recommender.informative(
        models=_buildable(models or (CPU_MODELS if pool.gpu_model == "cpu" else GPU_MODELS)),
        pool=replace(
            pool, cannot_train={name: Unsupported(why=why) for name, why in node.cannot_train.items()}
        ),
        count=count,
        longest_s=LARGEST_SHARE * budget_s / STEPS,
    )


def _holds(node: Node, model: str) -> bool:
    return node.held_models is None or model in node.held_models


def _buildable(models: Sequence[str]) -> list[str]:
    for model in models:
        if model.startswith(RANDOM_MODEL):
            try:
                config_json(portal_catalogue(model).model(model))
            except UnknownSizes as cannot:
                raise CannotCalibrate(str(cannot)) from cannot
    return list(models)


def training_file(*, owner: User, longest: int, now: datetime) -> DatasetFile:
    """Store a file with rows of random letters, each longer than the longest sample.

    The content does not matter for speed.
    """
    letters = random.Random(0)
    size = longest * BYTES_PER_TOKEN
    rows = [
        {"prompt": "Repeat", "completion": "".join(letters.choices(LETTERS, k=size))} for _ in range(ROWS)
    ]
    text = "\n".join(json.dumps(row) for row in rows).encode()
    return store_file(owner=owner, stream=io.BytesIO(text), filename="calibration.jsonl", now=now)


def job_name(config: Config) -> str:
    """Name a run so that those of one calibration can be told apart."""
    model = config.model_name.rpartition("/")[2][:40]
    size = f"{config.per_device_batch_size} × {config.tokens_per_sample} tokens"
    return f"calibration: {model}, {config.tuning}, {size}"


def submit(
    *,
    config: Config,
    owner: User,
    file: DatasetFile,
    now: datetime,
    creation: Creation = unkeyed,
) -> Job:
    """Submit the configuration as a job of a few steps, with everything fixed.

    `creation` opens its transaction.
    """
    names = (
        *("tuning", "precision", "quantization", "lora_r", "lora_alpha", "tokens_per_sample", "gpu_model"),
        *("number_gpus", "per_device_batch_size", "gradient_accumulation_steps", "gradient_checkpointing"),
    )
    values = {name: getattr(config, name) for name in names if getattr(config, name) is not None}
    batch = config.per_device_batch_size * config.gradient_accumulation_steps
    params = {**values, "effective_batch_size": batch, "max_steps": STEPS}
    return submit_job(
        owner=owner,
        model=config.model_name,
        training_file=file,
        params=params,
        name=job_name(config),
        now=now,
        creation=creation,
    )
