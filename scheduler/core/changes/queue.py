"""A queue in which one job is another, or is gone."""

from __future__ import annotations

from dataclasses import replace

from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.eligibility import OpenArrays, still_awaited
from scheduler.core.types import JobInfo, NodeInfo


def with_job(given: PlayInput, job: JobInfo) -> PlayInput:
    """The queue in which the job of this id is as given here."""
    jobs = tuple(job if one.id == job.id else one for one in given.state.jobs)
    return replace(given, state=replace(given.state, jobs=jobs))


def without_job(given: PlayInput, gone: JobInfo) -> PlayInput:
    """The queue in which a job has just ended, and left its GPUs."""
    ended = OpenArrays(given.state.jobs).end(gone)
    jobs = tuple(
        replace(one, awaits=still_awaited(one.awaits, ended)) if one.awaits else one
        for one in given.state.jobs
        if one.id != gone.id
    )
    nodes = tuple(_freed(node, gone) for node in given.state.nodes)
    return replace(given, state=replace(given.state, jobs=jobs, nodes=nodes))


def _freed(node: NodeInfo, gone: JobInfo) -> NodeInfo:
    if gone.holds is None or gone.holds.option.gpu_model != node.gpu_model:
        return node
    left = {index for holder, index in gone.holds.gpus if holder == node.id}
    return replace(node, free=tuple(sorted({*node.free, *left}))) if left else node
