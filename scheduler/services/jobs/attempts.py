"""Attempts: made from a decision, and ended with everything that follows."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from knowledge.catalogue.portal_catalogue import known_model
from knowledge.core.domain.option_json import option_json, read_option
from knowledge.core.domain.types import Option, Source
from knowledge.core.domain.wording import rough_time
from knowledge.core.recommend.duration import at_level
from scheduler import hints
from scheduler.core.handovers import by_node
from scheduler.core.market.types import NodeTerms
from scheduler.core.placement.levels import Closeness, TopologyLevel, closeness, reached
from scheduler.core.remaining_time import promised_remaining
from scheduler.core.types import GpuId, Topology
from scheduler.errors import CannotPlace
from scheduler.models import Allocation, Attempt, Claim, Gpu, Job, Node, PendingStart
from scheduler.selectors.checkpoints import resumable
from scheduler.selectors.cluster.sites import sites_of
from scheduler.selectors.figures.promise import promised_elsewhere
from scheduler.selectors.nodes import trusted_since
from scheduler.services.fair_shares import charge
from scheduler.services.jobs.executions import record
from scheduler.services.jobs.preemptions import note_lost_work, why_it_waits
from scheduler.services.jobs.terms.run_limits import fail_at_limit, is_used_up, stops_at
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.states import (
    BUDGETS,
    FAILURE_CLASS,
    STOPPED_TO,
    UNLIMITED,
    Budget,
    JobState,
    NodeState,
    Outcome,
    StopFor,
    WaitState,
)
from trainer.protocol import Phase

log = logging.getLogger(__name__)


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


@transaction.atomic
def start_attempt(*, job: Job, option: Option, gpus: Sequence[GpuId], now: datetime) -> Attempt:
    """Give a queued job these GPUs.

    Attempt, claims and allocations are made in one transaction. Raises CannotPlace when a row
    is no longer as the decision saw it, StaleJob if the job has moved since it was read.
    """
    if job.state != JobState.QUEUED:
        raise CannotPlace(f"Job {job.pk} is no longer queued.")
    indices = by_node(gpus)
    if len(indices) != option.nodes or len({len(share) for share in indices.values()}) != 1:
        raise CannotPlace(f"{option.key} takes equal shares of {option.nodes} nodes.")
    names = hold_ready_nodes(sorted(indices), option, now)
    PendingStart.objects.filter(job=job).delete()
    wanted = closeness(Topology(job.topology), job.topology_level, option)
    level = _level(gpus, wanted)
    if level is not None:
        option = at_level(option, level.word, known_model(job.model))
    checkpoint = resumable(job)
    resume_step = checkpoint.step if checkpoint else 0
    began_at, model = now.timestamp(), known_model(job.model)
    attempt = Attempt.objects.create(
        job=job,
        fence=job.fence + 1,
        option=option_json(option),
        resume_from=checkpoint,
        resume_step=resume_step,
        created_at=now,
        stops_at=stops_at(job, now),
        link_level=level,
        asked_level=None if wanted.topology is Topology.NONE else wanted.level,
        progress=promised_remaining(
            option, model, began_at=began_at, step=resume_step, total_steps=job.total_steps
        ).as_json(),
    )
    for rank, node_id in enumerate(sorted(indices)):
        _claim(attempt, node_id, rank, indices[node_id], now)
    move_job(
        job=job,
        to=JobState.ASSIGNED,
        now=now,
        reason=f"Placed on {', '.join(names)}.{_elsewhere(job.promised, option)}",
        data={"attempt": str(attempt.pk), "option": option.key, "gpus": [list(gpu) for gpu in gpus]},
        fence=attempt.fence,
        reload=False,
        binding=option_json(option),
        wait_code="",
        wait_text="",
    )
    return attempt


def require_as_decided(job: Job, option: Option) -> None:
    """Raise CannotPlace if the job is held by now, or has no such option any more."""
    if job.held_at:
        raise CannotPlace(f"An administrator holds job {job.pk} by now.")
    known = [*job.options, *([job.binding] if job.binding else [])]
    if option not in map(read_option, known):
        raise CannotPlace(f"Job {job.pk} has other options by now.")


def _level(gpus: Sequence[GpuId], wanted: Closeness) -> TopologyLevel | None:
    """How close the GPUs lie. Raises CannotPlace if closer ones are required by now."""
    several = {node for node, indices in by_node(gpus).items() if len(indices) > 1}
    level = reached(sites_of(several), gpus)  # no query where each is alone
    if level is not None and level < wanted.required:
        raise CannotPlace("The job requires GPUs that lie closer together by now.")
    return level


def hold_ready_nodes(node_ids: Collection[str], option: Option, now: datetime) -> list[str]:
    """Return the names of the nodes, which are held.

    They stay ready, at a price that the option allows, until the transaction ends. Raises
    CannotPlace.
    """
    ready = ready_nodes(node_ids, now)
    require_nodes(ready, node_ids, option)
    return [node.name for node in ready.values()]


def ready_nodes(node_ids: Collection[str], now: datetime) -> dict[str, Node]:
    """Those of the nodes that are ready, held in one order until the transaction ends."""
    ready = Node.objects.select_for_update().filter(
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


def _claim(attempt: Attempt, node_id: str, rank: int, indices: list[int], now: datetime) -> None:
    claim = Claim.objects.create(attempt=attempt, node_id=node_id, rank=rank)
    rows = Gpu.objects.filter(node=node_id, index__in=indices).values_list("pk", "pending")
    if len(rows) != len(indices):
        raise CannotPlace(f"Node {node_id} no longer has these GPUs.")
    if any(kept for _, kept in rows):
        raise CannotPlace(f"A GPU of node {node_id} is kept for another job.")
    try:
        with transaction.atomic():
            Allocation.objects.bulk_create(
                Allocation(claim=claim, gpu_id=gpu, allocated_at=now) for gpu, _ in rows
            )
    except IntegrityError as held:
        raise CannotPlace(f"A GPU of node {node_id} is held by another job.") from held


@transaction.atomic
def end_attempt(*, attempt: Attempt, outcome: Outcome, reason: str, now: datetime) -> Job | None:
    """End a live attempt and move its job by the state table.

    The attempt's GPUs are released and its measurements recorded. None if it had ended already.
    """
    job = locked(attempt.job_id)
    ended = Attempt.objects.filter(pk=attempt.pk, ended_at__isnull=True)
    if not ended.update(ended_at=now, outcome=outcome, reason=reason):
        return None
    attempt.refresh_from_db()
    attempt.claims.filter(outcome="").update(outcome=outcome, phase=Phase.ENDED)
    held = Allocation.objects.filter(claim__attempt=attempt, released_at__isnull=True)
    gpus = held.update(released_at=now)
    charge(job=job, gpus=gpus, begun_at=attempt.created_at, now=now)
    if job.preempting:
        note_lost_work(attempt=attempt, gpus=gpus, outcome=outcome, now=now)
    record(attempt=attempt, job=job, now=now)
    log.info("attempt ended", extra={"job": job.pk, "attempt": str(attempt.pk), "outcome": outcome.value})
    return _follow(job, attempt, outcome, reason, now)


def _follow(job: Job, attempt: Attempt, outcome: Outcome, reason: str, now: datetime) -> Job:
    """The state that follows an ended attempt (docs/architecture.md, "Reliability")."""
    data = {"attempt": str(attempt.pk), "outcome": outcome.value}
    stop_for = StopFor(job.stop_for) if job.stop_for else None
    if outcome is Outcome.SUCCEEDED and stop_for is not StopFor.CANCEL:
        # Reports arrive together: a short training may succeed before it was seen running.
        job = catch_up(job, now)
        return move_job(job=job, to=JobState.SUCCEEDED, now=now, reason=reason, data=data)
    then = STOPPED_TO[stop_for] if stop_for else JobState.QUEUED
    budget = _budget(attempt, outcome)
    own_fault = budget in (Budget.USER, Budget.OOM)
    goes_on = then is JobState.QUEUED and not own_fault
    if stop_for is StopFor.TIME_LIMIT or (goes_on and is_used_up(job, now)):
        return fail_at_limit(job, now, data)
    if stop_for is StopFor.CANCEL or (stop_for and not own_fault) or budget in UNLIMITED:
        waits = why_it_waits(job) if then is JobState.QUEUED else {}
        return move_job(job=job, to=then, now=now, reason=reason, data=data, **waits)
    return _spend(job, budget, then, reason, now, data)


def _budget(attempt: Attempt, outcome: Outcome) -> Budget:
    """Return the budget of the outcome.

    A start that timed out because a node did not take it up counts as declined there. No loss of a spot node
    counts.
    """
    not_taken_up = outcome is Outcome.TIMEOUT and attempt.claims.filter(outcome=Outcome.DECLINED).exists()
    if not_taken_up:
        return Budget.DECLINES
    return Budget.NONE if _withdrawn(attempt, outcome) else BUDGETS[outcome]


def _withdrawn(attempt: Attempt, outcome: Outcome) -> bool:
    """Did it end because a spot node went away, announced or not?

    A machine that is shut down may kill the training first.
    """
    spot = attempt.claims.filter(node__kind=NodeTerms.SPOT)
    if outcome is Outcome.LOST:
        return spot.exists()
    return outcome is Outcome.KILLED and spot.filter(node__withdraw_at__isnull=False).exists()


def catch_up(job: Job, now: datetime) -> Job:
    """Walk a placed job to running, so that only listed transitions happen."""
    if job.state == JobState.ASSIGNED:
        job = move_job(job=job, to=JobState.STARTING, now=now, first_started_at=job.first_started_at or now)
    if job.state == JobState.STARTING:
        job = move_job(job=job, to=JobState.RUNNING, now=now)
    return job


def _spend(job: Job, budget: Budget, then: JobState, reason: str, now: datetime, data: dict[str, Any]) -> Job:
    """Queue the job again, or pause it as asked, if the budget allows; else fail it."""
    column, allowed = {
        Budget.USER: ("errors_used", job.retries),
        Budget.OOM: ("oom_used", settings.OOM_RETRIES),
        Budget.INFRASTRUCTURE: ("infrastructure_used", settings.INFRASTRUCTURE_RETRIES),
    }[budget]
    used = getattr(job, column)
    if used >= allowed:
        return move_job(
            job=job,
            to=JobState.FAILED,
            now=now,
            reason=reason,
            data=data,
            failure_class=FAILURE_CLASS[budget],
            failure_reason=reason,
        )
    columns: dict[str, Any] = {column: used + 1}
    if budget is Budget.OOM:
        columns.update(_ask_for_less(job))
    return move_job(job=job, to=then, now=now, reason=reason, data=data, **columns)


def _ask_for_less(job: Job) -> dict[str, Any]:
    """Return the columns of a job that is to need less after running out of memory.

    It has no binding, and only options predicted to need less, once these are computed.
    """
    hints.refresh_options()
    failed = read_option(job.binding) if job.binding else None
    return {
        "binding": None,
        "options": [],
        "options_for": "",
        "less_memory_than": failed.peak_memory_bytes.value if failed else None,
        "wait_code": WaitState.OPTIONS,
        "wait_text": "It ran out of memory; a configuration that needs less is being looked for.",
    }
