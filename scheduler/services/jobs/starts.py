"""Jobs are given the GPUs that a decision chose for them.

Attempts, claims and allocations begin. Jobs that start in one moment are checked one by one against held
rows, and written together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import FilteredRelation, Q, prefetch_related_objects

from knowledge.catalogue.portal_catalogue import known_model
from knowledge.core.domain.option_json import option_json, read_option
from knowledge.core.domain.types import Option, Source
from knowledge.core.domain.wording import rough_time
from knowledge.core.recommend.duration import at_level
from scheduler.core.handovers import by_node
from scheduler.core.placement.levels import Closeness, TopologyLevel, closeness, reached
from scheduler.core.remaining_time import promised_remaining
from scheduler.core.types import GpuId, Topology
from scheduler.errors import CannotPlace, StaleJob
from scheduler.models import Allocation, Attempt, Checkpoint, Claim, Gpu, Job, Node, PendingStart
from scheduler.selectors.checkpoints import furthest
from scheduler.selectors.cluster.sites import sites_of
from scheduler.selectors.figures.promise import promised_elsewhere
from scheduler.selectors.silence import trusted_since
from scheduler.services.jobs.preemptions import note_kept_idle
from scheduler.services.jobs.terms.run_limits import stops_at
from scheduler.services.jobs.transitions import Note, move_all
from scheduler.states import JobState, NodeState

# The columns of a job that starts, as far as is asked.
OF_A_START = (
    "state", "stop_for", "version", "fence", "held_at", "wait_code", "model", "options", "binding", "promise",
    "topology", "topology_level", "max_run_s", "total_steps",
)  # fmt: skip


class Placed(NamedTuple):
    """A queued job, the option that it starts with, and its GPUs."""

    job: Job
    option: Option
    gpus: Sequence[GpuId]


class GpuNow(NamedTuple):
    """A GPU as it is now.

    place: its index on its node. kept: the job for which it is kept. holder: the job that holds it.
    """

    pk: int
    node_id: str
    place: int
    node: str
    kept: str | None
    holder: str | None


Refused = dict[Job, CannotPlace | StaleJob]


class _Start(NamedTuple):
    """A start that was found possible.

    level: how close its GPUs lie, if that is known.
    """

    job: Job
    option: Option
    shares: Mapping[str, list[GpuNow]]
    level: TopologyLevel | None
    wanted: Closeness


def start_attempt(*, job: Job, option: Option, gpus: Sequence[GpuId], now: datetime) -> Attempt:
    """Give a queued job these GPUs.

    Raises CannotPlace when a row is no longer as the decision saw it, StaleJob if the job has moved since it
    was read.
    """
    attempts, refused = start_attempts(placed=[Placed(job, option, gpus)], now=now)
    for why in refused.values():
        raise why
    return attempts[0]


@transaction.atomic
def start_attempts(*, placed: Sequence[Placed], now: datetime) -> tuple[list[Attempt], Refused]:
    """Give queued jobs their GPUs, in one transaction.

    The number of queries does not grow with theirs. Returns the attempts, and why the other jobs cannot
    start: a row is no longer as the decision saw it, so that nothing of them changes. Raises StaleJob or
    CannotPlace where one of several moves while they are written: then nobody starts.
    """
    rows, found, refused = _Rows(placed, now), list[_Start](), Refused()
    for one in placed:
        try:
            found.append(rows.checked(one))
        except CannotPlace as why:
            refused[one.job] = why
    try:
        return _begin(found, now), refused
    except (CannotPlace, StaleJob) as moved:
        if len(placed) > 1:
            raise
        return [], {placed[0].job: moved}


@transaction.atomic
def _begin(starts: Sequence[_Start], now: datetime) -> list[Attempt]:
    if not starts:
        return []
    jobs = [start.job for start in starts]
    note_kept_idle(takers=jobs, now=now)
    PendingStart.objects.filter(job__in=jobs).delete()
    prefetch_related_objects([job for job in jobs if job.max_run_s is not None], "attempts")
    checkpoints = furthest(jobs)
    attempts = Attempt.objects.bulk_create(
        _attempt(start, checkpoints.get(start.job.pk), now) for start in starts
    )
    _allocate(attempts, starts, now)
    notes = {start.job: _note(start, attempt) for start, attempt in zip(starts, attempts, strict=True)}
    move_all(notes=notes, to=JobState.ASSIGNED, now=now, wait_code="", wait_text="")
    for job, attempt in zip(jobs, attempts, strict=True):
        job.binding = attempt.option
    Job.objects.bulk_update(jobs, ["binding"])
    return attempts


def held_jobs(ids: Iterable[str], *columns: str) -> dict[str, Job]:
    """The jobs, with all columns unless some are named, held in one order.

    So two that need the same never wait for each other.
    """
    rows = Job.objects.select_for_update(of=("self",)).filter(pk__in=ids).order_by("pk")
    return {job.pk: job for job in (rows.only(*columns) if columns else rows)}


def require_as_decided(job: Job, option: Option) -> None:
    """Raise CannotPlace if the job is held by now, or has no such option any more."""
    if job.held_at:
        raise CannotPlace(f"An administrator holds job {job.pk} by now.")
    known = [*job.options, *([job.binding] if job.binding else [])]
    if option not in map(read_option, known):
        raise CannotPlace(f"Job {job.pk} has other options by now.")


def ready_nodes(node_ids: Collection[str], now: datetime) -> dict[str, Node]:
    """Those of the nodes that are ready, held in one order until the transaction ends."""
    ready = Node.objects.select_for_update(no_key=True).filter(
        pk__in=node_ids, state=NodeState.READY, last_seen_at__gte=trusted_since(now)
    )
    return {node.pk: node for node in ready.order_by("pk").only("name", "price_per_gpu_hour")}


def require_nodes(ready: Mapping[str, Node], node_ids: Iterable[str], option: Option) -> None:
    """Raise CannotPlace if a node is not ready, or dearer than the option allows."""
    limit = option.price_per_gpu_hour
    for node_id in node_ids:
        node = ready.get(node_id)
        if node is None:
            raise CannotPlace("A chosen node is no longer ready.")
        if limit is not None and node.price_per_gpu_hour > limit:
            raise CannotPlace("A chosen node has become dearer.")


def gpus_now(gpus: Collection[GpuId]) -> dict[GpuId, GpuNow]:
    """Those of the GPUs that are there, as they are; one query."""
    held = FilteredRelation("allocations", condition=Q(allocations__released_at__isnull=True))
    of_nodes = [Q(node=node, index__in=indices) for node, indices in by_node(gpus).items()]
    if not of_nodes:
        return {}
    rows = Gpu.in_place.filter(reduce(or_, of_nodes)).annotate(held=held)
    columns = ("node_id", "index", "node__name", "pending__start__job", "held__claim__attempt__job")
    found = (GpuNow(*row) for row in rows.order_by().values_list("pk", *columns))
    return {(gpu.node_id, gpu.place): gpu for gpu in found}


class _Rows:
    """The rows on which starts depend, as they are.

    Nodes are held until the transaction ends.
    """

    def __init__(self, placed: Sequence[Placed], now: datetime) -> None:
        gpus = {gpu for one in placed for gpu in one.gpus}
        self.nodes = ready_nodes({node for node, _ in gpus}, now)
        self.gpus = gpus_now(gpus)
        shares = (by_node(one.gpus) for one in placed)
        several = {node for share in shares for node, indices in share.items() if len(indices) > 1}
        self.sites = sites_of(several) if several else {}
        self.taken: set[int] = set()  # by starts that were checked

    def checked(self, one: Placed) -> _Start:
        """Raises CannotPlace."""
        job, option, gpus = one
        if job.state != JobState.QUEUED:
            raise CannotPlace(f"Job {job.pk} is no longer queued.")
        indices = by_node(gpus)
        if len(indices) != option.nodes or len({len(share) for share in indices.values()}) != 1:
            raise CannotPlace(f"{option.key} takes equal shares of {option.nodes} nodes.")
        require_nodes(self.nodes, indices, option)
        wanted = closeness(Topology(job.topology), job.topology_level, option)
        level = reached(self.sites, gpus)
        if level is not None and level < wanted.required:
            raise CannotPlace("The job requires GPUs that lie closer together by now.")
        if level is not None:
            option = at_level(option, level.word, known_model(job.model))
        shares = {node: self._share(job, node, indices[node]) for node in sorted(indices)}
        self.taken.update(gpu.pk for share in shares.values() for gpu in share)
        return _Start(job, option, shares, level, wanted)

    def _share(self, job: Job, node: str, indices: Iterable[int]) -> list[GpuNow]:
        share = [self.gpus.get((node, index)) for index in indices]
        found = [gpu for gpu in share if gpu is not None]
        if len(found) != len(share):
            raise CannotPlace(f"Node {node} no longer has these GPUs.")
        if any(gpu.kept not in (None, job.pk) for gpu in found):
            raise CannotPlace(f"A GPU of node {node} is kept for another job.")
        if any(gpu.holder or gpu.pk in self.taken for gpu in found):
            raise CannotPlace(f"A GPU of node {node} is held by another job.")
        return found


def _attempt(start: _Start, checkpoint: Checkpoint | None, now: datetime) -> Attempt:
    job, resume_step = start.job, checkpoint.step if checkpoint else 0
    remaining = promised_remaining(
        start.option,
        known_model(job.model),
        began_at=now.timestamp(),
        step=resume_step,
        total_steps=job.total_steps,
    )
    return Attempt(
        job=job,
        fence=job.fence + 1,
        option=option_json(start.option),
        resume_from=checkpoint,
        resume_step=resume_step,
        created_at=now,
        stops_at=stops_at(job, now),
        link_level=start.level,
        asked_level=None if start.wanted.topology is Topology.NONE else start.wanted.level,
        progress=remaining.as_json(),
    )


def _allocate(attempts: Iterable[Attempt], starts: Iterable[_Start], now: datetime) -> None:
    """Give each attempt a claim for each of its nodes, with the GPUs there."""
    claims = {
        Claim(attempt=attempt, node_id=node, rank=rank): share
        for attempt, start in zip(attempts, starts, strict=True)
        for rank, (node, share) in enumerate(start.shares.items())
    }
    Claim.objects.bulk_create(claims)
    try:
        with transaction.atomic():
            Allocation.objects.bulk_create(
                Allocation(claim=claim, gpu_id=gpu.pk, allocated_at=now)
                for claim, share in claims.items()
                for gpu in share
            )
    except IntegrityError as held:
        raise CannotPlace("A GPU is held by another job.") from held


def _note(start: _Start, attempt: Attempt) -> Note:
    names = ", ".join(share[0].node for share in start.shares.values())
    gpus = [[gpu.node_id, gpu.place] for share in start.shares.values() for gpu in share]
    return Note(
        f"Placed on {names}.{_elsewhere(start.job.promised, start.option)}",
        {"attempt": str(attempt.pk), "option": start.option.key, "gpus": gpus},
    )


def _elsewhere(promised: Option | None, option: Option) -> str:
    """Say that a job is placed elsewhere than promised at submission.

    The sentence is empty if it is not.
    """
    first = promised_elsewhere(promised, option)
    if first is None or option.source is Source.DEFAULT:
        return ""
    here, there = (rough_time(one.duration_s.value) for one in (option, first))
    return (
        f" It runs on {option.gpus} × {option.gpu_model} and should take {here};"
        f" promised at submission were {first.gpus} × {first.gpu_model} and {there}."
    )
