"""The step from tokens per second to a promise.

It computes duration and cost of one configuration for one data set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from knowledge.core.domain import workload
from knowledge.core.domain.catalogue import Model
from knowledge.core.domain.cost import cost
from knowledge.core.domain.types import Config, GpuPool, Interval, Option, Prediction, Workload
from knowledge.core.recommend.link_levels import rate_at

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a promised duration, in seconds.

    step_s: of one step; None where nothing is predicted. evaluation_s: of all evaluations together.
    """

    startup_s: float
    step_s: Interval | None
    evaluation_s: float
    saving_s: float


def size_class(model: Model) -> int:
    """Return the size class of a model.

    Models whose sizes differ by less than a factor of four share start-up measurements.
    """
    return int(math.log(max(1, model.parameters), 4))


def startup(model: Model, gpu_model: str, measured: Startups) -> Interval:
    """Seconds from start to the first step: as own runs of models of its size took.

    Without any: as those nearest in size took, and the time that loading more or fewer weights takes; without
    those the stated default.
    """
    size = size_class(model)
    classes = [of_size for gpu, of_size in measured if gpu == gpu_model]
    if not classes:
        stated = CPU_STARTUP_S if gpu_model == "cpu" else GPU_STARTUP_S + _load_s(model.parameters)
        return _around(stated, STARTUP_FACTOR)
    nearest = min(classes, key=lambda of_size: (abs(of_size - size), of_size))
    found = measured[gpu_model, nearest]
    if nearest == size:
        return found
    further_s = _load_s(model.parameters) - _load_s(4.0 ** (nearest + 0.5))
    return _around(max(found.value + further_s, found.value / STARTUP_FACTOR), STARTUP_FACTOR)


def _load_s(parameters: float) -> float:
    return 2 * parameters / LOAD_BYTES_S


def startup_of(seconds: Sequence[float]) -> Interval:
    """Return the median of measured start-ups, with bounds.

    The bounds follow from the spread in logarithms and from the stated factor.
    """
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
    model: Model,
    data: Workload,
    pool: GpuPool,
    startup: Interval,
    epochs: float | None,
    max_steps: int | None,
    by_level: Mapping[str, float] | None = None,
) -> Option:
    """Return the configuration as an option.

    Duration = start-up + evaluation and saving + steps · tokens / θ.
    """
    steps = workload.steps(data, config.effective_batch_size, epochs, max_steps)
    padded = workload.padded_length(
        data, config.tokens_per_sample, config.per_device_batch_size, config.effective_batch_size
    )
    samples = steps * config.effective_batch_size
    evaluations = math.ceil(samples / max(1, data.rows))
    tokens = (samples + data.validation_rows * evaluations * FORWARD_SHARE) * padded
    duration = _duration(tokens, prediction.tokens_per_second, startup, _saving_s(config, model))
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
        price_per_gpu_hour=pool.price_per_gpu_hour,
        gpu_memory_bytes=pool.memory_bytes,
        by_level=by_level or {},
    )


def repredict(promised: Option, *, model: Model | None, data: Workload, startup_s: float) -> Option:
    """Predict an option again, with what was counted and measured.

    These are an exact token histogram and the start-up. Steps stay as promised: the number of rows was known
    from the start. model: None if it is not known now.
    """
    config, rate = promised.config, promised.tokens_per_second
    padded = workload.padded_length(
        data, config.tokens_per_sample, config.per_device_batch_size, config.effective_batch_size
    )
    if not padded or not promised.padded_tokens or not promised.duration_s.value:
        return promised
    saving = _saving_s(config, model)
    trained_s = promised.duration_s.value - promised.startup_s - saving
    tokens = trained_s * rate.value * padded / promised.padded_tokens
    duration = _duration(tokens, rate, Interval(startup_s, startup_s, startup_s), saving)
    price = promised.cost.value / promised.duration_s.value
    return replace(
        promised, startup_s=startup_s, duration_s=duration, cost=duration.scaled(price), padded_tokens=padded
    )


def at_level(promised: Option, level: str, model: Model | None) -> Option:
    """The option on GPUs that lie so close; unchanged where that is not predicted.

    model: None if it is not known now.
    """
    rate, startup_s = promised.tokens_per_second, promised.startup_s
    found = rate_at(promised.by_level, level)
    if found is None or not rate.value > 0 or not promised.duration_s.value > 0:
        return promised
    saving = _saving_s(promised.config, model)
    tokens = max(0.0, promised.duration_s.value - startup_s - saving) * rate.value
    slowed = rate.scaled(found / rate.value)
    duration = _duration(tokens, slowed, Interval(startup_s, startup_s, startup_s), saving)
    price = promised.cost.value / promised.duration_s.value
    return replace(promised, tokens_per_second=slowed, duration_s=duration, cost=duration.scaled(price))


def parts(promised: Option, model: Model | None) -> Parts:
    """Return the parts that `option` added up.

    The rest beside start-up, steps and saving is evaluation.

    model: None if it is not known now.
    """
    rate, saving_s = promised.tokens_per_second, _saving_s(promised.config, model)
    if not rate.value > 0 or not promised.padded_tokens or not promised.steps:
        return Parts(startup_s=promised.startup_s, step_s=None, evaluation_s=0.0, saving_s=saving_s)
    tokens = promised.padded_tokens * promised.config.effective_batch_size
    slowest, fastest = (tokens / bound if bound else None for bound in (rate.low, rate.high))
    step_s = Interval(tokens / rate.value, fastest, slowest)
    steps_s = promised.startup_s + promised.steps * step_s.value + saving_s
    return Parts(
        startup_s=promised.startup_s,
        step_s=step_s,
        evaluation_s=max(0.0, promised.duration_s.value - steps_s),
        saving_s=saving_s,
    )


def _duration(tokens: float, rate: Interval, startup: Interval, saving_s: float) -> Interval:
    """Return the duration of start-up, training and saving.

    Start-up and training are off independently of each other.
    """
    trained_s = tokens / rate.value
    value = startup.value + trained_s + saving_s

    def off(rate_bound: float | None, startup_bound: float | None) -> float | None:
        if not rate_bound or startup_bound is None:
            return None
        return math.hypot(tokens / rate_bound - trained_s, startup_bound - startup.value)

    below, above = off(rate.high, startup.low), off(rate.low, startup.high)
    return Interval(value, None if below is None else value - below, None if above is None else value + above)


def _saving_s(config: Config, model: Model | None) -> float:
    """Return the seconds for writing the result once.

    The result is all weights, or an adapter, which takes about a second.
    """
    if config.tuning != "full" or model is None:
        return 1.0
    return 1.0 + 2 * model.parameters / SAVE_BYTES_S
