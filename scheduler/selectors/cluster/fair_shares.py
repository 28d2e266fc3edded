"""Weights in fair shares, and decayed use of GPUs, as rows have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from django.db.models import Q

from portal.accounts.models import Team, User
from scheduler.core.limits import NO_TEAM
from scheduler.core.ordering.decayed_use import accounts, faded, use_of
from scheduler.models import Allocation, FairShare
from scheduler.selectors.jobs import JobColumns


@dataclass(frozen=True, slots=True)
class ShareUsed:
    """A weight, and the decayed GPU-seconds that count against it."""

    weight: float = 1.0
    used_gpu_s: float = 0.0


NOTHING_USED = ShareUsed()


@dataclass(frozen=True, slots=True)
class FairShares:
    """Shares of people and teams, by account (scheduler.core.ordering.decayed_use)."""

    by_account: dict[str, ShareUsed] = field(default_factory=dict)

    def weights(self, job: JobColumns) -> tuple[float, float]:
        """The weights of the job's owner and of its team."""
        team, person = _accounts(job.team_id, job.owner_id)
        return self._of(person).weight, self._of(team).weight if job.team_id else 1.0

    def with_held(self, held: Iterable[tuple[JobColumns, int, datetime]], now: datetime) -> dict[str, float]:
        """Each account's use at `now`.

        held: jobs with the GPUs that they hold, and since when.
        """
        used = defaultdict(float, {name: share.used_gpu_s for name, share in self.by_account.items()})
        for job, gpus, since in held:
            for account in {*_accounts(job.team_id, job.owner_id)}:
                used[account] += use_of(gpus, (now - since).total_seconds())
        return dict(used)

    def _of(self, account: str) -> ShareUsed:
        return self.by_account.get(account, NOTHING_USED)


def shares_of(jobs: Collection[JobColumns], now: datetime) -> FairShares:
    """The shares of the owners and the teams of these jobs; one query.

    GPUs that are held now are not part of their use.
    """
    people, teams = {job.owner_id for job in jobs}, {job.team_id for job in jobs if job.team_id}
    rows = FairShare.objects.filter(Q(user__in=people) | Q(team__in=teams)) if jobs else ()
    return FairShares({_name(row.user_id, row.team_id): _share(row, now) for row in rows})


def share_of(account: User | Team, now: datetime) -> ShareUsed:
    """The share of one person or team, with what their jobs hold now."""
    is_team = isinstance(account, Team)
    row = FairShare.objects.filter(**{"team" if is_team else "user": account}).first()
    whose = "claim__attempt__job__team" if is_team else "claim__attempt__job__owner"
    held = Allocation.objects.filter(released_at__isnull=True, **{whose: account})
    now_held = sum(
        use_of(1, (now - since).total_seconds()) for since in held.values_list("allocated_at", flat=True)
    )
    kept = _share(row, now) if row else NOTHING_USED
    return ShareUsed(kept.weight, kept.used_gpu_s + now_held)


def _share(row: FairShare, now: datetime) -> ShareUsed:
    return ShareUsed(row.weight, faded(row.used_gpu_s, (now - row.at).total_seconds()))


def _name(user_id: int | None, team_id: int | None) -> str:
    return accounts(str(team_id or NO_TEAM), str(user_id)).team


@lru_cache  # a queue has far more jobs than owners
def _accounts(team_id: int | None, owner_id: int) -> tuple[str, str]:
    return accounts(str(team_id or NO_TEAM), str(owner_id))
