"""Bundles, and the jobs that may have one, for policies that divide a cluster.

A bundle is a GPU model with numbers of nodes and GPUs. Of options with the same bundle one is wished for.
"""

from __future__ import annotations

from collections.abc import Iterable

from knowledge.core.domain.types import Option
from scheduler.core.divide.rules import DivideRules
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.types import JobInfo, NodeInfo

ANY = DivideRules()


def movable(
    jobs: Iterable[JobInfo], nodes: Iterable[NodeInfo], rules: DivideRules, now: float
) -> list[JobInfo]:
    """Return the jobs among which GPUs are divided, in the order of submission.

    These are waiting jobs that may start and running ones that may be moved.
    """
    ready = {node.id for node in nodes if node.ready}
    found = [
        job
        for job in jobs
        if (
            rules.movable(job, now) and all(node in ready for node, _ in job.holds.gpus)
            if job.holds
            else not job.hold
        )
    ]
    return sorted(found, key=lambda job: (job.submitted_at, job.id))


def possible_options(job: JobInfo, free: FreeGpus, rules: DivideRules = ANY) -> list[Option]:
    """Return the options that the empty cluster could hold, the smallest first.

    There is one per bundle.
    """
    return one_per_bundle(allowed_options(job, free, rules))


def one_per_bundle(options: Iterable[Option]) -> list[Option]:
    """The first option of each bundle, the smallest first."""
    bundles: dict[tuple[str, int, int], Option] = {}
    for option in sorted(options, key=size):
        bundles.setdefault(bundle(option), option)
    return list(bundles.values())


def every_option(job: JobInfo, free: FreeGpus, rules: DivideRules = ANY) -> list[Option]:
    """Return all options that the empty cluster could hold, the smallest first."""
    return sorted(allowed_options(job, free, rules), key=size)


def allowed_options(job: JobInfo, free: FreeGpus, rules: DivideRules = ANY) -> list[Option]:
    """Return the job's options that the empty cluster could hold and the rules allow.

    The option of a running job is among them, even where it could not start so any more: it may stay.
    """
    found = free.possible(job)
    if job.holds:
        held = job.holds.option
        found = [option for option in found if rules.worth(job, option)]
        if held in job.options and bundle(held) not in map(bundle, found):
            found.append(held)
    return found


def size(option: Option) -> tuple[int, int, str]:
    """(GPUs, nodes, GPU model)."""
    config = option.config
    return config.number_gpus, config.number_nodes, config.gpu_model


def bundle(option: Option) -> tuple[str, int, int]:
    """(GPU model, nodes, GPUs)."""
    config = option.config
    return config.gpu_model, config.number_nodes, config.number_gpus
