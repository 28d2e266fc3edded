"""The truth of Sia's and Pollux' workloads.

Each epoch runs at the goodput that was measured for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

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

_Key = tuple[str, str, Shares, int]  # application, GPU, GPUs on each node, batch size (0: free)


class _Course(NamedTuple):
    """A whole training on some GPUs, epoch by epoch.

    rates: share of all progress per second. left_s: seconds from each epoch's start to the end.
    """

    rates: list[float]
    left_s: list[float]


@dataclass(frozen=True, slots=True)
class GoodputTruth(GroundTruth):
    """Ground truth by the goodput of each epoch.

    tuned: the batch size follows the best goodput of each epoch; else it stays as submitted.
    """

    applications: Mapping[str, Application]
    tuned: bool
    _courses: dict[_Key, _Course | None] = field(default_factory=dict)

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        application = self.applications.get(job.profile)
        course = self._course(job, option, shares)
        if application is None or course is None:
            return None
        epoch = application.epoch(done)
        return Throughput(course.rates[epoch], application.ends[epoch])

    def left_s(self, job: TraceJob, option: Option, shares: Shares, done: float = 0.0) -> float | None:
        application = self.applications.get(job.profile)
        course = self._course(job, option, shares)
        if application is None or course is None:
            return None
        epoch = application.epoch(done)
        return course.left_s[epoch + 1] + (application.ends[epoch] - done) / course.rates[epoch]

    def startup_s(self, job: TraceJob, option: Option) -> float:
        if profiled_gpu(option.gpu_model) == "default":
            return _POLLUX_RESTART_S
        return _RESTART_S.get(job.profile, _POLLUX_RESTART_S)

    def fails_after_s(self, job: TraceJob, option: Option) -> float:
        return self.startup_s(job, option)

    def stretches(self, job: TraceJob) -> bool:
        return self.tuned

    def _course(self, job: TraceJob, option: Option, shares: Shares) -> _Course | None:
        key = (job.profile, profiled_gpu(option.gpu_model), shares, 0 if self.tuned else job.batch_size)
        if key not in self._courses:
            self._courses[key] = self._measured(key)
        return self._courses[key]

    def _measured(self, key: _Key) -> _Course | None:
        """None where nothing can run."""
        name, gpu, shares, wanted = key
        application = self.applications.get(name)
        if application is None or gpu not in application.steps:
            return None
        sizes, seconds = _measure(application, gpu, shares, wanted)
        if not len(sizes):
            return None
        best = (application.gains(sizes) / seconds[:, None]).max(axis=0)
        slowdown = 1.0 if gpu == "default" else _SLOWDOWN.get(name, 1.0)
        rates = best / slowdown / float(application.progress[-1])
        if not (rates > 0).all():
            return None
        each_s = np.diff(application.ends, prepend=0.0) / rates
        left_s = np.append(np.cumsum(each_s[::-1])[::-1], 0.0)
        return _Course(rates.tolist(), left_s.tolist())


def _measure(application: Application, gpu: str, shares: Shares, wanted: int) -> tuple[Array, Array]:
    steps = application.steps[gpu]
    limit = _POLLUX_LOCAL_BATCH.get(application.name) if gpu == "default" else None
    batches = _split(application, steps, sum(shares), wanted, limit or steps.most_local)
    step, sync = steps.of(shares, batches.local)
    seconds = step + (step - sync) * batches.accumulation
    good = np.isfinite(seconds) & (seconds > 0)
    return batches.size[good], seconds[good]


def _split(application: Application, steps: StepTimes, gpus: int, wanted: int, most_local: float) -> Batches:
    """Return global batches as whole micro-batches.

    They are the one asked for, or a geometric grid of them.
    """
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
