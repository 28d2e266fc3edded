"""From tokens per second to a promise: duration and cost of one configuration for one data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from knowledge.core.domain import catalogue, workload
from knowledge.core.domain.cost import cost
from knowledge.core.domain.types import Config, GpuPool, Interval, Option, Prediction, Workload

CPU_STARTUP_S = 15.0
GPU_STARTUP_S = 30.0
LOAD_BYTES_S = 1e9
SAVE_BYTES_S = 5e8
FORWARD_SHARE = 1 / 3  # evaluation does the forward pass alone
STARTUP_FACTOR = 2.0  # how far off a start-up may be (80 %) of which nothing was measured
STATED_RUNS = 3  # measured start-ups that the stated factor counts as
NORMAL_80 = 1.2816  # standard deviations on either side that hold 80 % of a normal distribution
QUICKEST_S = 0.1

# Measured start-ups, by (GPU model, size class).
Startups = Mapping[tuple[str, int], Interval]


def size_class(model: catalogue.Model) -> int:
    """Models whose sizes differ by less than a factor of four share start-up measurements."""
    return int(math.log(max(1, model.parameters), 4))


def startup(model: catalogue.Model, gpu_model: str, measured: Startups) -> Interval:
    """Seconds from start to the first step: as own runs took, else the stated default."""
    found = measured.get((gpu_model, size_class(model)))
    if found is not None:
        return found
    stated = CPU_STARTUP_S if gpu_model == "cpu" else GPU_STARTUP_S + 2 * model.parameters / LOAD_BYTES_S
    return _around(stated, STARTUP_FACTOR)


def startup_of(seconds: Sequence[float]) -> Interval:
    """The median of measured start-ups, and bounds from their spread in logarithms and the stated factor."""
    usual = max(median(seconds), QUICKEST_S)
    off = [math.log(max(second, QUICKEST_S) / usual) ** 2 for second in seconds]
    stated = STATED_RUNS * (math.log(STARTUP_FACTOR) / NORMAL_80) ** 2
    return _around(usual, math.exp(NORMAL_80 * math.sqrt((sum(off) + stated) / (len(off) + STATED_RUNS))))


def _around(value: float, factor: float) -> Interval:
    return Interval(value, value / factor, value * factor)


def option(
    config: Config,
    prediction: Prediction,
    *,
    data: Workload,
    pool: GpuPool,
    startup: Interval,
    epochs: float | None,
    max_steps: int | None,
) -> Option:
    """The configuration as an option: duration = start-up + evaluation and saving + steps · tokens / θ."""
    steps = workload.steps(data, config.effective_batch_size, epochs, max_steps)
    padded = workload.padded_length(data, config.tokens_per_sample, config.per_device_batch_size)
    samples = steps * config.effective_batch_size
    evaluations = math.ceil(samples / max(1, data.rows))
    tokens = (samples + data.validation_rows * evaluations * FORWARD_SHARE) * padded
    duration = _duration(tokens, prediction.tokens_per_second, startup, _saving_s(config))
    return Option(
        config=config,
        p_valid=prediction.p_valid,
        tokens_per_second=prediction.tokens_per_second,
        peak_memory_bytes=prediction.peak_memory_bytes,
        startup_s=startup.value,
        duration_s=duration,
        cost=duration.scaled(cost(1.0, config.number_gpus * pool.price_per_gpu_hour)),
        source=prediction.source,
        outside=prediction.outside,
        steps=steps,
        padded_tokens=padded or None,
    )


def reforecast(promised: Option, *, data: Workload, startup_s: float) -> Option:
    """The same option with an exact token histogram and the start-up that was measured.

    Steps stay as promised: the number of rows was known from the start.
    """
    config, rate = promised.config, promised.tokens_per_second
    padded = workload.padded_length(data, config.tokens_per_sample, config.per_device_batch_size)
    if not padded or not promised.padded_tokens or not promised.duration_s.value:
        return promised
    saving = _saving_s(config)
    trained_s = promised.duration_s.value - promised.startup_s - saving
    tokens = trained_s * rate.value * padded / promised.padded_tokens
    duration = _duration(tokens, rate, Interval(startup_s, startup_s, startup_s), saving)
    price = promised.cost.value / promised.duration_s.value
    return replace(
        promised, startup_s=startup_s, duration_s=duration, cost=duration.scaled(price), padded_tokens=padded
    )


def _duration(tokens: float, rate: Interval, startup: Interval, saving_s: float) -> Interval:
    """Start-up, training and saving; start-up and training are off independently of each other."""
    trained_s = tokens / rate.value
    value = startup.value + trained_s + saving_s

    def off(rate_bound: float | None, startup_bound: float | None) -> float | None:
        if not rate_bound or startup_bound is None:
            return None
        return math.hypot(tokens / rate_bound - trained_s, startup_bound - startup.value)

    below, above = off(rate.high, startup.low), off(rate.low, startup.high)
    return Interval(value, None if below is None else value - below, None if above is None else value + above)


def _saving_s(config: Config) -> float:
    """Seconds for writing the result once: all weights, or an adapter that takes about a second."""
    if config.method != "full":
        return 1.0
    return 1.0 + 2 * catalogue.model(config.model_name).parameters / SAVE_BYTES_S
