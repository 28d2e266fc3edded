"""The trainings that measure a GPU: real shapes of 0.5B to 8B, drawn by a seed.

Each round asks every model for one of the tunings, so that any beginning of the list is a fair sample. Sizes
and flags are drawn at random within a band of the GPU's memory that is drawn as well. Trainings that
physics puts beyond 1.4 times of it are left out, since nothing would be learnt from them, and so are long
steps, for the sake of time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

MODELS = (
    "Qwen/Qwen2.5-0.5B",
    "meta-llama/Llama-3.2-1B",
    "EleutherAI/pythia-1.4b",
    "HuggingFaceTB/SmolLM2-1.7B",
    "Qwen/Qwen3-1.7B",
    "ibm-granite/granite-3.1-2b-base",
    "meta-llama/Llama-3.2-3B",
    "Qwen/Qwen3-4B",
    "mistralai/Mistral-7B-v0.3",
    "meta-llama/Llama-3.1-8B",
)
OTHER_MODELS = (
    "Qwen/Qwen3-0.6B",
    "EleutherAI/pythia-410m",
    "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
    "deepseek-ai/deepseek-coder-1.3b-base",
    "Qwen/Qwen2.5-1.5B",
    "EleutherAI/pythia-2.8b",
    "Qwen/Qwen2.5-3B",
    "Qwen/Qwen1.5-4B",
    "meta-llama/Llama-2-7b-hf",
    "Qwen/Qwen2.5-7B",
)
CPU_MODELS = ("builtin/tiny-llama", "builtin/tiny-qwen")
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
BATCHES = (1, 2, 4, 8, 16, 32)
ACCUMULATIONS = (1, 1, 1, 2, 4)
RANKS = (8, 16, 16, 64)
PRECISIONS = (*["bfloat16"] * 10, "float16", "float32")
PLACEMENTS = (*["all-linear"] * 5, "attention")
VARIED_SHARE = 0.12  # of the runs: rows of many lengths, as usual data have, rather than full ones
# Shares of the GPU's memory, by physics: small models alone would leave nearly all of it free.
BANDS = ((0.03, 0.4), (0.03, 0.4), (0.35, 0.8), (0.35, 0.8), (0.8, 1.4))
FEWEST_STEPS, MOST_STEPS = 4, 40
TRIES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """How the trainings of one series are drawn.

    varied_share: of the trainings with rows of many lengths, rather than full ones.

    models: each is asked in every round. lengths, batches, accumulations, ranks: drawn from these.

    tunings: in turn; longest_step_s, train_s: of a step and of all steps, by physics; own_rounds: of those
    so many each has one that runs in a process of its own as well.
    """

    seed: int = 0
    tunings: tuple[str, ...] = ("lora", "qlora", "full")
    longest_step_s: float = 1.8
    train_s: float = 1.2
    own_rounds: int = 5
    precisions: tuple[str, ...] = PRECISIONS
    varied_share: float = VARIED_SHARE
    models: tuple[str, ...] = MODELS
    lengths: tuple[int, ...] = LENGTHS
    batches: tuple[int, ...] = BATCHES
    accumulations: tuple[int, ...] = ACCUMULATIONS
    ranks: tuple[int, ...] = RANKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One training. varied: rows of many lengths; own: in a process of its own, too."""

    config: Config
    steps: int
    varied: bool = False
    own: bool = False


def plan(gpu_model: str, catalogue: Catalogue, series: Series, rounds: int = 30) -> Iterator[Planned]:
    """Yield the trainings in their order."""
    draw = _Draw(gpu_model, catalogue, series, random.Random(series.seed))
    models = CPU_MODELS if gpu_model == "cpu" else series.models
    tunings = [tuning for tuning in series.tunings if gpu_model != "cpu" or tuning != "qlora"]
    for turn in range(rounds):
        for place, model in enumerate(draw.chance.sample(models, len(models))):
            tuning = tunings[(turn + models.index(model)) % len(tunings)]
            found = draw.one(model, tuning)
            if found is not None:
                yield replace(found, own=place == turn % len(models) and turn < series.own_rounds)


@dataclass(frozen=True, slots=True)
class _Draw:
    gpu_model: str
    catalogue: Catalogue
    series: Series
    chance: random.Random

    def one(self, model: str, tuning: str) -> Planned | None:
        """A training whose steps are short; None where the band of memory has none."""
        low, high = self.chance.choice(BANDS)
        longest = min(self.catalogue.model(model).max_context, self.series.lengths[-1])
        lengths = [length for length in self.series.lengths if length <= (512 if self._cpu else longest)]
        for _ in range(TRIES):
            config = self._config(model, tuning, lengths)
            varied = self.chance.random() < self.series.varied_share
            c = columns([config], self.catalogue)
            step_s = config.effective_batch_size * config.tokens_per_sample / cost_model.throughput(c)[0]
            share = float(cost_model.memory(c).total[0] / c.memory[0])
            if low <= share <= high and step_s <= self.series.longest_step_s:
                steps = 1 + round(self.series.train_s / float(step_s))
                return Planned(config=config, steps=min(MOST_STEPS, max(FEWEST_STEPS, steps)), varied=varied)
        return None

    @property
    def _cpu(self) -> bool:
        return self.gpu_model == "cpu"

    def _config(self, model: str, tuning: str, lengths: list[int]) -> Config:
        chance = self.chance
        return Config(
            model_name=model,
            tuning=tuning,
            gpu_model=self.gpu_model,
            number_gpus=1,
            tokens_per_sample=chance.choice(lengths),
            per_device_batch_size=chance.choice(self.series.batches),
            gradient_accumulation_steps=chance.choice(self.series.accumulations),
            precision=self._precision(tuning),
            quantization="bnb-4bit" if tuning == "qlora" else "none",
            lora_r=None if tuning == "full" else (rank := chance.choice(self.series.ranks)),
            lora_alpha=None if tuning == "full" else 2 * rank,
            gradient_checkpointing=chance.random() < 0.6,
            sharding="none",
            network="none",
            **{**config_space.OUR_TRAINER, **self._placed(tuning)},
        )

    def _precision(self, tuning: str) -> str:
        """Nobody computes in float32 beside weights of 4 bits."""
        if self._cpu:
            return "float32"
        usual = [
            precision for precision in self.series.precisions if tuning != "qlora" or precision != "float32"
        ]
        return self.chance.choice(usual)

    def _placed(self, tuning: str) -> dict[str, str]:
        return {} if tuning == "full" else {"target_modules": self.chance.choice(PLACEMENTS)}
