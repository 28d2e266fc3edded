"""From tokens per second to a promise: duration and cost of one configuration for one data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from knowledge.core import catalog, workload
from knowledge.core.types import Config, Interval, Option, Pool, Prediction, Workload

CPU_STARTUP_S = 15.0
GPU_STARTUP_S = 30.0
LOAD_BYTES_S = 1e9
SAVE_BYTES_S = 5e8
FORWARD_SHARE = 1 / 3  # evaluation does the forward pass alone

# Medians of measured start-ups, by (GPU model, size class).
Startups = Mapping[tuple[str, int], float]


def size_class(model: catalog.Model) -> int:
    """Models whose sizes differ by less than a factor of four share start-up measurements."""
    return int(math.log(max(1, model.parameters), 4))


def startup_s(model: catalog.Model, gpu_model: str, measured: Startups) -> float:
    """Seconds from start to the first step: own median, else the stated default."""
    found = measured.get((gpu_model, size_class(model)))
    if found is not None:
        return found
    return CPU_STARTUP_S if gpu_model == "cpu" else GPU_STARTUP_S + 2 * model.parameters / LOAD_BYTES_S


def option(
    config: Config,
    prediction: Prediction,
    *,
    data: Workload,
    pool: Pool,
    startup: float,
    epochs: float | None,
    max_steps: int | None,
) -> Option:
    """The configuration as an option: duration = start-up + evaluation and saving + steps · tokens / θ."""
    steps = workload.steps(data, config.effective_batch_size, epochs, max_steps)
    padded = workload.padded_length(data, config.tokens_per_sample, config.per_device_batch_size)
    samples = steps * config.effective_batch_size
    evaluations = math.ceil(samples / max(1, data.rows))
    tokens = (samples + data.validation_rows * evaluations * FORWARD_SHARE) * padded
    duration = _duration(tokens, prediction.tokens_per_second, startup + _saving_s(config))
    return Option(
        config=config,
        p_valid=prediction.p_valid,
        tokens_per_second=prediction.tokens_per_second,
        peak_memory_bytes=prediction.peak_memory_bytes,
        startup_s=startup,
        duration_s=duration,
        cost=duration.scaled(config.number_gpus * pool.price_per_gpu_hour / 3600),
        source=prediction.source,
        outside=prediction.outside,
        steps=steps,
        padded_tokens=padded or None,
    )


def reforecast(promised: Option, *, data: Workload, startup: float | None = None) -> Option:
    """The same option with an exact token histogram and, if known, its measured start-up.

    Steps stay as promised: the number of rows was known from the start.
    """
    config = promised.config
    padded = workload.padded_length(data, config.tokens_per_sample, config.per_device_batch_size)
    if not padded or not promised.padded_tokens or not promised.duration_s.value:
        return promised
    start = promised.startup_s if startup is None else startup
    saving = _saving_s(config)
    ratio = padded / promised.padded_tokens

    def moved(seconds: float | None) -> float | None:
        return None if seconds is None else start + saving + (seconds - promised.startup_s - saving) * ratio

    old = promised.duration_s
    duration = Interval(moved(old.value) or 0.0, moved(old.low), moved(old.high))
    price = promised.cost.value / old.value
    return replace(
        promised, startup_s=start, duration_s=duration, cost=duration.scaled(price), padded_tokens=padded
    )


def _duration(tokens: float, rate: Interval, fixed_s: float) -> Interval:
    return Interval(
        fixed_s + tokens / rate.value,
        None if not rate.high else fixed_s + tokens / rate.high,
        None if not rate.low else fixed_s + tokens / rate.low,
    )


def _saving_s(config: Config) -> float:
    """Seconds for writing the result once: all weights, or an adapter that takes about a second."""
    if config.method != "full":
        return 1.0
    return 1.0 + 2 * catalog.model(config.model_name).parameters / SAVE_BYTES_S
