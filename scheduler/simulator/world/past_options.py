"""Jobs of a portal's own past, with the options that each really had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import Shares
from scheduler.simulator.inputs.cluster import Bundle, Cluster
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.ground_truth import RecordedTruth, Throughput


@dataclass(frozen=True, slots=True)
class PastOptions:
    """The options that a job had, best first.

    slower: how many times longer than promised it ran; it would have with the others, too.
    failed: options that did not run, and after how many seconds that showed.
    """

    options: tuple[Option, ...]
    slower: float
    failed: Mapping[str, float] = field(default_factory=dict)

    def promised_s(self, option: Option) -> float | None:
        """The promise for this place, else for such a bundle; None: there was none."""
        alike = [one for one in self.options if one.key == option.key and one.duration_s.value > 0]
        same = [one for one in alike if one.place == option.place]
        return next((one.duration_s.value for one in (*same, *alike)), None)

    def truly(self, option: Option) -> Option:
        """The option as it really would have been."""
        return replace(
            option,
            duration_s=option.duration_s.scaled(self.slower),
            cost=option.cost.scaled(self.slower),
            tokens_per_second=option.tokens_per_second.scaled(1 / self.slower),
        )

    def bundles(self, cluster: Cluster) -> tuple[Bundle, ...]:
        """The places of its options that the cluster could hold."""
        found = (Bundle(one.gpu_model, one.gpus, one.nodes) for one in self.options)
        return tuple(bundle for bundle in dict.fromkeys(found) if _holds(cluster, bundle))


def _holds(cluster: Cluster, bundle: Bundle) -> bool:
    each = bundle.gpus // bundle.nodes
    pools = (
        pool for pool in cluster.pools if pool.gpu_model == bundle.gpu_model and pool.gpus_per_node >= each
    )
    return sum(pool.nodes for pool in pools) >= bundle.nodes


@dataclass(frozen=True, slots=True)
class PastTruth(RecordedTruth):
    """The durations that jobs would have had with each of their options.

    Of other jobs, what was recorded.
    """

    past: Mapping[str, PastOptions]

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        known = self.past.get(job.job_id)
        if known is None:
            return RecordedTruth.pace(self, job, option, shares, done)
        promised_s = known.promised_s(option)
        if option.key in known.failed or promised_s is None:
            return None
        return Throughput(1.0 / (promised_s * known.slower))

    def left_s(self, job: TraceJob, option: Option, shares: Shares, done: float = 0.0) -> float | None:
        pace = self.pace(job, option, shares, done)
        return None if pace is None else (1.0 - done) / pace.rate

    def fails_after_s(self, job: TraceJob, option: Option) -> float:
        known = self.past.get(job.job_id)
        return known.failed.get(option.key, 0.0) if known else 0.0
