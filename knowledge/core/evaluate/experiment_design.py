"""The configurations that would teach most about a GPU.

They are those that share most of the uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.step_time import step_tokens
from knowledge.core.domain import config_space, tuning_support
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, GpuPool
from knowledge.core.predict.base import BasePredictor
from knowledge.core.predict.gp_residual import SIGMA

TUNINGS = ("lora", "full", "qlora")
LENGTHS = (128, 256, 512, 1024, 2048)
BATCHES = (1, 2, 4, 8, 16)
HOPELESS = 0.3  # what probably runs out of memory teaches less than its time is worth


def candidates(models: Sequence[str], pool: GpuPool, catalogue: Catalogue) -> list[Config]:
    """Return short runs on one GPU of the pool as candidates for experiments.

    They vary models, tunings, lengths, batches and checkpointing.
    """
    tunings = [tuning for tuning in TUNINGS if tuning_support.node_sizes(pool, tuning)]
    cpu = pool.gpu_model == "cpu"
    found = [
        Config(
            model_name=model,
            tuning=tuning,
            gpu_model=pool.gpu_model,
            number_gpus=1,
            tokens_per_sample=length,
            per_device_batch_size=batch,
            precision="float32" if cpu else "bfloat16",
            quantization="bnb-4bit" if tuning == "qlora" else "none",
            lora_r=None if tuning == "full" else 16,
            lora_alpha=None if tuning == "full" else 32,
            gradient_checkpointing=checkpointing,
            sharding="none",
            network="none",
            **config_space.OUR_TRAINER,
        )
        for model, tuning, length, batch, checkpointing in product(
            models, tunings, LENGTHS, BATCHES, (True, False)
        )
    ]
    return [
        config
        for config in found
        if config_space.refused(config, catalogue) is None
        and not config_space.why_too_long(config.model_name, config.tokens_per_sample, catalogue)
    ]


def choose_experiments(
    configs: Sequence[Config], predictor: BasePredictor, count: int, longest_s: float = np.inf
) -> list[Config]:
    """The configurations to run, all on one GPU model, most informative first.

    Each time the one that takes most variance from the predictions of all that run, given those chosen before
    (A-optimal design, Pukelsheim 1993, one after the other); a run that is likely to fail teaches less.
    Runs whose step takes over `longest_s` are never chosen, though they count among what is to be predicted.
    """
    if not configs:
        return []
    c = columns(configs, predictor.catalogue)
    scores = predictor.score(configs, c)
    too_long = step_tokens(c) / scores.rate > longest_s
    worth = np.where((scores.p_valid < HOPELESS) | too_long, 0.0, scores.p_valid)
    covariance = predictor.covariance(configs, c)
    chosen: list[int] = []
    for _ in range(min(count, int((worth > 0).sum()))):
        # How much of each row's error a run of each column explains.
        explained = covariance / np.sqrt(np.diag(covariance) + SIGMA**2)
        row = int(np.argmax(worth * (scores.p_valid @ explained**2)))
        chosen.append(row)
        worth[row] = 0.0
        covariance = covariance - np.outer(explained[:, row], explained[:, row])
    return [configs[row] for row in chosen]
