"""Predictions for policies: options whose figures are kept apart from the truth.

Levels, from nothing to everything: `default` (the request as submitted, one stated duration for all),
`validity` (the same without options that do not run), `exact` (medians of finished runs of the same kind),
`neighbours` (where there are none, of the last runs of the same owner or group), `performance` (predictions
with a controlled error, or those that came with the trace), `oracle` (the truth). The last two may also
choose how many GPUs a stretching job gets.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from statistics import NormalDist, median
from typing import Protocol

from knowledge.core.domain.cost import cost
from knowledge.core.domain.types import Config, Interval, Option, Source
from knowledge.reading.similar import weighted_median
from scheduler.core.placement.fit import Shares
from scheduler.simulator.inputs.cluster import Bundle, Cluster, elastic, requested
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.ground_truth import GroundTruth, shares_of
from scheduler.simulator.world.past_options import PastOptions

STATED_DURATION_S = 3600.0  # where nothing is known
_WORK = 1e6  # units of work of a job whose trace counts none
_MEDIAN_Z = NormalDist().inv_cdf(0.75)  # median of |z| of a standard normal
_MEASURED_TWICE = 2
_NOTHING = Interval(0.0)
_NEIGHBOURS = 20  # the last finished runs that are alike
_OWNERS, _GROUPS = 0.95, 0.85  # the similarity of runs of the same owner, or of the group on such GPUs


class Fidelity(StrEnum):
    """The knowledge that policies have of a job; least first."""

    DEFAULT = "default"  # nothing: what cannot run fails once it is tried
    VALIDITY = "validity"  # which options run
    EXACT = "exact"  # and how long a configuration takes that ran twice
    NEIGHBOURS = "neighbours"  # and about how long similar jobs took
    PERFORMANCE = "performance"  # predicted durations of all options, with an error
    ORACLE = "oracle"  # the true ones

    @property
    def chooses(self) -> bool:
        """Does it know enough to choose another configuration than the one submitted?"""
        return self in (Fidelity.PERFORMANCE, Fidelity.ORACLE)


_ORACLE = Fidelity.ORACLE
_LEARNING = (Fidelity.EXACT, Fidelity.NEIGHBOURS)


class PredictionSource(Protocol):
    """A source of predictions for policies."""

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        """Options of the job, best first, once this share of it is done."""
        ...

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        """Options of the job after one did not run; `left` are the others."""
        ...

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None:
        """A job has finished."""
        ...


def lognormal_sigma(mdape: float) -> float:
    """Return the spread of a lognormal factor whose median absolute error is `mdape`.

    The error is about that value (0.2: 20 %).
    """
    return math.log1p(mdape) / _MEDIAN_Z


@dataclass(slots=True)
class PredictionModel:
    """The maker of a job's options at one level of knowledge.

    error: the MdAPE of `performance`. past: what was really known of jobs of a portal's own past.
    """

    level: Fidelity
    truth: GroundTruth
    cluster: Cluster
    error: float = 0.0
    seed: int = 0
    past: Mapping[str, PastOptions] = field(default_factory=dict)
    _finished: dict[tuple[str, ...], list[float]] = field(default_factory=lambda: defaultdict(list))
    _profiled: set[str] = field(default_factory=set)
    _near: dict[tuple[str, ...], deque[float]] = field(
        default_factory=lambda: defaultdict(partial(deque, maxlen=_NEIGHBOURS))
    )
    _known: dict[tuple[object, ...], tuple[Option, ...]] = field(default_factory=dict)
    _prices: dict[str, float] = field(init=False)
    _chooses: bool = field(init=False)

    def __post_init__(self) -> None:
        self._prices, self._chooses = self.cluster.prices, self.level.chooses

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        """Return options with predicted figures, the fastest first.

        Ties keep the order of the pools. A job that stretches has the one it asked for if no
        other was measured. The truth is the same for all jobs of a kind, and found once.
        """
        if self.level is not _ORACLE or self.past:
            return self._options(job, done)
        alike = _same_truth(job)
        if done:
            alike = *alike, done
        known = self._known.get(alike)
        if known is None:
            known = self._known[alike] = self._options(job, done)
        return known

    def _options(self, job: TraceJob, done: float) -> tuple[Option, ...]:
        if self._chooses and (known := self.past.get(job.job_id)):
            promised = self.level is Fidelity.PERFORMANCE
            return known.options if promised else tuple(map(known.truly, known.options))
        options: list[Option] = []
        if self._chooses and self.truth.stretches(job):
            options = self._made(job, elastic(job, self.cluster), done)
        if not options:
            options = self._made(job, requested(job, self.cluster), done)
        if len(options) > 1:
            options.sort(key=lambda option: option.duration_s.value)
        return tuple(options)

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        """The options that have not failed yet."""
        return left

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None:
        """Remember how long a finished job ran, for `exact` and `neighbours`."""
        if self.level not in _LEARNING:
            return
        self._finished[_kind(job, option.config)].append(duration_s)
        if self.level is Fidelity.NEIGHBOURS:
            for kind, _ in _near_kinds(job, option.config):
                self._near[kind].append(duration_s)

    def profile(self, job: TraceJob) -> tuple[Option, ...]:
        """Return the options of a job that a profiling run has measured.

        They are as good as predictions of `performance`.
        """
        self._profiled.add(job.job_id)
        return self.options(job)

    def _made(self, job: TraceJob, bundles: Iterable[Bundle], done: float) -> list[Option]:
        made = [self._option(job, bundle, done) for bundle in bundles]
        return [option for option in made if option is not None]

    def _option(self, job: TraceJob, bundle: Bundle, done: float) -> Option | None:
        """Predict an option of a job.

        The duration is that of a whole job which goes on as the rest of this one, at its mean pace.
        """
        blank, shares = blank_of(bundle)
        pace = self.truth.pace(job, blank, shares, done)
        left_s = None if pace is None else self.truth.left_s(job, blank, shares, done)
        if pace is None or left_s is None:
            return blank if self.level is Fidelity.DEFAULT else None
        true_s = left_s / (1.0 - done)
        duration_s, source = self._duration(job, blank.config, true_s)
        rate = pace.rate * true_s / duration_s if self._chooses else 1.0 / duration_s
        return Option(
            config=blank.config,
            p_valid=1.0,
            tokens_per_second=Interval(_WORK * rate),
            peak_memory_bytes=_NOTHING,
            startup_s=0.0,
            duration_s=Interval(duration_s),
            cost=Interval(spent) if (spent := self._cost(bundle, duration_s)) else _NOTHING,
            source=source,
        )

    def _duration(self, job: TraceJob, config: Config, true_s: float) -> tuple[float, Source]:
        if self.level is _ORACLE:
            return true_s, Source.EXACT
        if self.level is Fidelity.PERFORMANCE or job.job_id in self._profiled:
            return job.pred_duration_s or true_s * self._error(job, config), Source.MODEL
        past = self._finished.get(_kind(job, config), ())
        if len(past) >= _MEASURED_TWICE:
            return median(past), Source.EXACT
        alike = [(took, near) for kind, near in _near_kinds(job, config) for took in self._near.get(kind, ())]
        if len(alike) >= _MEASURED_TWICE:
            return weighted_median(alike), Source.MODEL
        return STATED_DURATION_S, Source.DEFAULT

    def _error(self, job: TraceJob, config: Config) -> float:
        """The same factor whenever the same job and bundle are asked about."""
        if not self.error:
            return 1.0
        rng = random.Random(f"{self.seed}/{job.job_id}/{_place(config)}")
        return math.exp(lognormal_sigma(self.error) * rng.gauss())

    def _cost(self, bundle: Bundle, duration_s: float) -> float:
        return cost(duration_s, self._prices[bundle.gpu_model] * bundle.gpus)


def _same_truth(job: TraceJob) -> tuple[object, ...]:
    """All that the truth depends on."""
    return (  # an `attrgetter` takes three times as long
        job.profile, job.batch_size, job.work, job.duration_s, job.gpus, job.nodes, job.min_gpus,
        job.max_gpus, job.gpu_type,
    )  # fmt: skip


def _kind(job: TraceJob, config: Config) -> tuple[str, ...]:
    """Jobs of one kind repeat each other: same owner, application and GPUs."""
    return job.user or job.group, job.profile or job.model, str(job.batch_size), _place(config)


def _near_kinds(job: TraceJob, config: Config) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Kinds of jobs that are alike, with their similarity."""
    group = ("group", job.group, _place(config)), _GROUPS
    return ((("owner", job.user), _OWNERS), group) if job.user else (group,)


def _place(config: Config) -> str:
    return f"{config.gpu_model}:{config.number_nodes}x{config.number_gpus}"


def _stated_option(bundle: Bundle) -> Option:
    config = Config(
        model_name="", tuning="", gpu_model=bundle.gpu_model, number_gpus=bundle.gpus,
        number_nodes=bundle.nodes, tokens_per_sample=1, per_device_batch_size=1,
    )  # fmt: skip
    return Option(
        config=config, p_valid=1.0, tokens_per_second=Interval(_WORK / STATED_DURATION_S),
        peak_memory_bytes=Interval(0.0), startup_s=0.0, duration_s=Interval(STATED_DURATION_S),
        cost=Interval(0.0), source=Source.DEFAULT,
    )  # fmt: skip


@cache
def blank_of(bundle: Bundle) -> tuple[Option, Shares]:
    """The option of a bundle alone, with its shares of nodes, smallest first."""
    option = _stated_option(bundle)
    return option, shares_of(option, ())
