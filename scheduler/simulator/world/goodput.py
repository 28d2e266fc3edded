"""The truth of Sia's and Pollux' workloads: each epoch runs at the goodput that was measured for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import Shares
from scheduler.simulator.inputs.profiles import Application, Array, Batches, StepTimes, profiled_gpu
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.ground_truth import GroundTruth, Throughput

# Sia's published calibration: how much slower each ran than its profile, and what a restart costs
_SLOWDOWN = {"cifar10": 1.8, "imagenet": 1.2, "yolov3": 1.2, "bert": 1.2, "deepspeech2": 1.2, "ncf": 1.5}
_RESTART_S = {
    "cifar10": 50.0,
    "deepspeech2": 25.0,
    "bert": 120.0,
    "yolov3": 80.0,
    "imagenet": 250.0,
    "ncf": 15.0,
}
_POLLUX_RESTART_S = 30.0
_POLLUX_LOCAL_BATCH = {"yolov3": 8.0}  # its simulator's own limit
_CANDIDATES = 50

_StepKey = tuple[str, str, Shares, int]  # application, GPU, GPUs on each node, batch size (0: free)
_RateKey = tuple[str, str, Shares, int, int]  # and the epoch


@dataclass(frozen=True, slots=True)
class GoodputTruth(GroundTruth):
    """`tuned`: the batch size follows the best goodput of each epoch; else it stays as submitted."""

    applications: Mapping[str, Application]
    tuned: bool
    _rates: dict[_RateKey, float] = field(default_factory=dict)
    _steps: dict[_StepKey, tuple[Array, Array]] = field(default_factory=dict)

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        application = self.applications.get(job.profile)
        if application is None:
            return None
        epoch = application.epoch(done)
        rate = self._rate(application, job.batch_size, option.gpu_model, shares, epoch)
        return (
            Throughput(rate, float(application.progress[epoch] / application.progress[-1]))
            if rate > 0
            else None
        )

    def startup_s(self, job: TraceJob, option: Option) -> float:
        if profiled_gpu(option.gpu_model) == "default":
            return _POLLUX_RESTART_S
        return _RESTART_S.get(job.profile, _POLLUX_RESTART_S)

    def fails_after_s(self, job: TraceJob, option: Option) -> float:
        return self.startup_s(job, option)

    def stretches(self, job: TraceJob) -> bool:
        return self.tuned

    def _rate(
        self, application: Application, batch_size: int, gpu_model: str, shares: Shares, epoch: int
    ) -> float:
        wanted = 0 if self.tuned else batch_size
        key = (application.name, profiled_gpu(gpu_model), shares, wanted, epoch)
        if key not in self._rates:
            self._rates[key] = self._goodput(key)
        return self._rates[key]

    def _goodput(self, key: _RateKey) -> float:
        """Share of all progress per second, 0 where nothing can run."""
        name, gpu, shares, wanted, epoch = key
        sizes, seconds = self._step_seconds((name, gpu, shares, wanted))
        if not len(sizes):
            return 0.0
        application = self.applications[name]
        best = float((application.gain(sizes, epoch) / seconds).max())
        slowdown = 1.0 if gpu == "default" else _SLOWDOWN.get(name, 1.0)
        return best / slowdown / float(application.progress[-1])

    def _step_seconds(self, key: _StepKey) -> tuple[Array, Array]:
        """Global batch sizes that can run there, and the seconds of a step of each."""
        name, gpu, shares, wanted = key
        if key not in self._steps:
            application = self.applications[name]
            measured = gpu in application.steps
            self._steps[key] = _measure(application, gpu, shares, wanted) if measured else _NOTHING
        return self._steps[key]


_NOTHING = (np.empty(0), np.empty(0))


def _measure(application: Application, gpu: str, shares: Shares, wanted: int) -> tuple[Array, Array]:
    steps = application.steps[gpu]
    limit = _POLLUX_LOCAL_BATCH.get(application.name) if gpu == "default" else None
    batches = _split(application, steps, sum(shares), wanted, limit or steps.most_local)
    step, sync = steps.of(shares, batches.local)
    seconds = step + (step - sync) * batches.accumulation
    good = np.isfinite(seconds) & (seconds > 0)
    return batches.size[good], seconds[good]


def _split(application: Application, steps: StepTimes, gpus: int, wanted: int, most_local: float) -> Batches:
    """Global batches as whole micro-batches: the one asked for, or a geometric grid of them."""
    if wanted:
        sizes = np.array([float(wanted)])
    else:
        least = max(application.initial_batch, steps.least_local * gpus)
        if least > application.largest_batch:
            return Batches(np.empty(0), np.empty(0), np.empty(0))
        sizes = np.geomspace(least, application.largest_batch, _CANDIDATES)
    per_gpu = np.ceil(sizes / gpus - 1e-8) if wanted else sizes / gpus
    accumulation = np.ceil(per_gpu / most_local - 1e-8) - 1
    if gpus == 1:  # gradient noise cannot be estimated from a single micro-batch
        accumulation = np.where(sizes > application.initial_batch, np.maximum(accumulation, 1), accumulation)
    local = np.ceil(per_gpu / (accumulation + 1) - 1e-8)
    local = np.minimum(local, np.floor(application.largest_batch / (gpus * (accumulation + 1))))
    size = local * (accumulation + 1) * gpus
    good = (local >= math.floor(steps.least_local)) & (size >= application.initial_batch)
    return Batches(size[good], local[good], accumulation[good])
