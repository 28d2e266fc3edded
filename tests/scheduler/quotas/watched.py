"""Ticks whose starts are counted against the limits in force, by plain loops over rows."""

from __future__ import annotations

from collections.abc import Collection

from scheduler.core.types import Topology
from scheduler.loop.tick import TickReport, tick
from scheduler.models import Allocation, Attempt, Job, PersonLimit, TeamQuota

SLOTS_OF_LEVEL = {2: 4, 3: 2}  # in one socket and in one NUMA node, as `world.declare_sites` says


def watched_tick() -> TickReport:
    """A tick; what it starts exceeds no limit, is whole, and lies as close as its job insists."""
    before = set(Attempt.objects.values_list("pk", flat=True))
    done = tick()
    new = list(Attempt.objects.exclude(pk__in=before).select_related("job"))
    for attempt in new:
        is_whole_and_close(attempt)
    jobs = [attempt.job for attempt in new]
    teams_stay_within_their_quotas({job.team_id for job in jobs if job.team_id})
    people_stay_within_their_limits({job.owner_id for job in jobs})
    return done


def is_whole_and_close(attempt: Attempt) -> None:
    held = Allocation.objects.filter(claim__attempt=attempt, released_at__isnull=True)
    places = list(held.values_list("claim__node", "gpu__index"))
    assert len(places) == attempt.promised.gpus, (attempt.job_id, places)
    slots = SLOTS_OF_LEVEL.get(attempt.job.topology_level or 0)
    if attempt.job.topology == Topology.GUARANTEED and slots:
        assert len({(node, index // slots) for node, index in places}) == 1, (attempt.job_id, places)


def held_by(jobs: Collection[Job]) -> int:
    held = Allocation.objects.filter(claim__attempt__job__in=jobs, released_at__isnull=True)
    return held.count()


def teams_stay_within_their_quotas(teams: Collection[int]) -> None:
    """Of what is guaranteed and may be borrowed; those who leave for others are no longer counted.

    All GPUs are of one model.
    """
    for quota in TeamQuota.objects.filter(team__in=teams, until__isnull=True, borrow_limit__isnull=False):
        jobs = [job for job in Job.objects.filter(team=quota.team) if not job.preempting]
        assert held_by(jobs) <= quota.guaranteed + (quota.borrow_limit or 0), quota


def people_stay_within_their_limits(people: Collection[int]) -> None:
    for limit in PersonLimit.objects.filter(user__in=people):
        jobs = Job.objects.filter(owner=limit.user, attempts__ended_at__isnull=True, attempts__isnull=False)
        running = [job for job in jobs if not job.preempting]
        assert limit.running_jobs is None or len(running) <= limit.running_jobs, limit
        assert limit.gpus is None or held_by(running) <= limit.gpus, limit
