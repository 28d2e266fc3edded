"""Holdings of teams and people, and the limits that one more start would exceed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from knowledge.core.domain.types import Option
from scheduler.core.cycle.wait_reasons import counted_gpus
from scheduler.core.limits import ALL_MODELS, Quota
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.types import ClusterState, JobInfo, Wait
from scheduler.states import WaitState

Share = tuple[str, str]  # (GPU model or ALL_MODELS, team)


class Ledger:
    """Running totals of a cluster, as a plan takes and gives back GPUs.

    A team may always use what it is guaranteed. Beyond that it borrows: at most its borrow limit, and only
    GPUs that are idle, which are those that no other team keeps. A team keeps what it does not lend, and as
    much of its guarantee as its waiting jobs ask for. Of a guarantee over all models, it keeps GPUs of the
    model that a job cannot do without: idle ones of others are none to that job.
    """

    def __init__(self, state: ClusterState) -> None:
        self.quotas: dict[str, dict[str, Quota]] = defaultdict(dict)
        for quota in state.limits.quotas:
            self.quotas[quota.gpu_model][quota.team] = quota
        self.limits = {limit.user: limit for limit in state.limits.users}
        self.capacity: Counter[str] = Counter()
        for node in state.nodes:
            if node.ready:
                self.capacity.update({node.gpu_model: node.total, ALL_MODELS: node.total})
        self.held: Counter[Share] = Counter()
        self.in_all: Counter[str] = Counter()
        self.demand: Counter[Share] = Counter()
        self.jobs_of: Counter[str] = Counter()
        self.gpus_of: Counter[str] = Counter()
        # Refusals of equal jobs until a change: by their users' counts, and by their teams.
        self._refused: dict[tuple[object, ...], tuple[Wait | None, Wait | None]] = {}
        self.gpu_s_of: defaultdict[str, float] = defaultdict(float)
        self._wanted: dict[str, dict[str, int]] = {}
        self._asking: defaultdict[str, dict[str, JobInfo]] = defaultdict(dict)  # jobs that wait, by team
        self._left_some: set[str] = set()  # teams that hold less than when their jobs were asked
        self.needed: Counter[Share] = Counter()  # of a guarantee over all models, by the model that must be
        self._needs: dict[str, Share] = {}
        self._places = FreeGpus(state.nodes)
        for job in state.running:
            if job.holds is not None:
                self.take(job, job.holds.option)
        for job in state.waiting:  # also one that is leaving its GPUs, which will ask for others at once
            self._want(job)

    def take(self, job: JobInfo, option: Option) -> None:
        """The job holds the GPUs of this option from now on."""
        self._count(job, option, 1)
        self._want_no_more(job)

    def give(self, job: JobInfo) -> None:
        """A running job is stopped; it waits again."""
        if job.holds is not None:
            self._count(job, job.holds.option, -1)
            self._left_some.add(job.team)
            self._want(job)

    def swap(self, job: JobInfo, option: Option) -> None:
        """A running job moves to another option."""
        if job.holds is not None:
            self._count(job, job.holds.option, -1)
            self._count(job, option, 1)
            self._left_some.add(job.team)

    def refusal(self, job: JobInfo, option: Option) -> Wait | None:
        """Why the job may not take this option now; None if it may.

        Its own holdings do not count.
        """
        if job.holds is None:
            return self.refusals(job, (option,))[0]
        self._count(job, job.holds.option, -1)
        refused = self._of_user(job, option) or self._of_team(job, option)
        self._count(job, job.holds.option, 1)
        return refused

    def refusals(self, job: JobInfo, options: Iterable[Option]) -> list[Wait | None]:
        """Why a waiting job may not take each of these options."""
        team, user, borrows, refused = job.team, job.user, job.borrows, self._refused
        limit = self.limits.get(user)
        hours = limit is not None and limit.gpu_s_left is not None
        found: list[Wait | None] = []
        for option in options:
            config = option.config
            alike = (team, user, borrows, config.gpu_model, config.number_gpus)
            known = refused.get(alike)
            if known is None:
                known = refused[alike] = self._of_counts(job, option), self._of_team(job, option)
            wait = known[0] or (self._of_hours(job, option) if hours else None) or known[1]
            found.append(Wait(job.id, wait.code, wait.reason) if wait else None)
        return found

    def guarantees(self, job: JobInfo, option: Option) -> bool:
        """Is this option within what the job's team is guaranteed?"""
        in_force = [self.quotas[model] for model in _models(option) if self.quotas.get(model)]
        return bool(in_force) and all(
            (quota := quotas.get(job.team)) is not None
            and self.held[quota.gpu_model, job.team] + option.gpus <= quota.guaranteed
            for quotas in in_force
        )

    def borrowed(self, team: str, model: str) -> int:
        """GPUs of this model, or of all, that a team uses beyond its guarantee."""
        quotas = self.quotas.get(model)
        if not quotas:
            return 0
        return max(0, self.held[model, team] - (quotas[team].guaranteed if team in quotas else 0))

    def _of_user(self, job: JobInfo, option: Option) -> Wait | None:
        return self._of_counts(job, option) or self._of_hours(job, option)

    def _of_counts(self, job: JobInfo, option: Option) -> Wait | None:
        limit = self.limits.get(job.user)
        if limit is None:
            return None
        jobs, gpus = self.jobs_of[job.user], self.gpus_of[job.user]
        if limit.running_jobs is not None and jobs >= limit.running_jobs:
            text = f"Its owner runs {jobs} jobs, and may run at most {limit.running_jobs} at a time."
            return Wait(job.id, WaitState.QUOTA_USER, text)
        if limit.gpus is not None and gpus + option.gpus > limit.gpus:
            most = counted_gpus(limit.gpus)
            text = f"Its owner's jobs hold {gpus} of at most {most}; it needs {option.gpus}."
            return Wait(job.id, WaitState.QUOTA_USER, text)
        return None

    def _of_hours(self, job: JobInfo, option: Option) -> Wait | None:
        limit = self.limits.get(job.user)
        if limit is None or limit.gpu_s_left is None:
            return None
        needed_s, left_s = _gpu_s(job, option), limit.gpu_s_left - self.gpu_s_of[job.user]
        if 0 < left_s >= needed_s:
            return None
        text = "None of its owner's GPU-hours of this month are left."
        if left_s > 0:
            needed, left = _told_apart(needed_s / 3600, left_s / 3600)
            text = (
                f"It needs about {needed} GPU-hours, and of its owner's hours of this month {left} are left."
            )
        return Wait(job.id, WaitState.HOURS_USER, text)

    def _of_team(self, job: JobInfo, option: Option) -> Wait | None:
        gpus = option.config.number_gpus
        for model in _models(option):
            quotas = self.quotas.get(model)
            if not quotas:
                continue
            quota = quotas.get(job.team) or Quota(team=job.team, gpu_model=model)
            held = self.held[model, job.team]
            borrows = held + gpus - quota.guaranteed
            if borrows > 0 and (why := self._no_loan(job, quota, borrows, option)):
                whose = "Its team's jobs hold" if job.team else "Jobs without a team hold"
                owed = f"{quota.guaranteed} {'is' if quota.guaranteed == 1 else 'are'} guaranteed"
                has = f"{whose} {counted_gpus(held, model)}, and {owed}."
                return Wait(job.id, WaitState.QUOTA_TEAM, f"{has} It needs {gpus}{why}")
        return None

    def _no_loan(self, job: JobInfo, quota: Quota, borrows: int, option: Option) -> str:
        """Why its team may not borrow so many; empty if it may."""
        if not job.borrows:
            return ", and a job that may not be stopped borrows none."
        if quota.borrow_limit is not None and borrows > quota.borrow_limit:
            return f", and the team may borrow at most {quota.borrow_limit}."
        idle = self._idle(quota.gpu_model, self._kept(quota.gpu_model, quota.team))
        if quota.gpu_model == ALL_MODELS:
            model = option.gpu_model
            idle = min(idle, self._idle(model, self._kept_of_model(model, quota.team)))
        if option.gpus > idle:
            return f"; {max(0, idle)} are idle that other teams do not need."
        return ""

    def _idle(self, model: str, kept: int) -> int:
        return self.capacity[model] - self.in_all[model] - kept

    def _kept_of_model(self, model: str, team: str) -> int:
        """GPUs of a model that other teams' jobs need within guarantees over all."""
        return sum(
            max(min(quota.guaranteed - self.held[ALL_MODELS, other], self.needed[model, other]), 0)
            for other, quota in self.quotas[ALL_MODELS].items()
            if other != team
        )

    def _kept(self, model: str, team: str) -> int:
        """Idle GPUs that the other teams keep."""
        self._ask_again()
        return sum(
            max(quota.kept - held, min(quota.guaranteed - held, self.demand[model, other]), 0)
            for other, quota in self.quotas[model].items()
            if other != team and (held := self.held[model, other]) < quota.guaranteed
        )

    def _count(self, job: JobInfo, option: Option, sign: int) -> None:
        self._refused.clear()
        gpus = sign * option.config.number_gpus
        for model in _models(option):
            self.held[model, job.team] += gpus
            self.in_all[model] += gpus
        if job.user in self.limits:
            self.jobs_of[job.user] += sign
            self.gpus_of[job.user] += gpus
            self.gpu_s_of[job.user] += sign * _gpu_s(job, option)

    def _want(self, job: JobInfo) -> None:
        """Keep for the job's team what the job asks for: the least of each model.

        Nothing is kept for a job that may not start anyway, or that its team's guarantee is too small for.
        """
        self._asking[job.team][job.id] = job
        left = self._left_of_guarantees(job.team)
        if not left:
            return
        least: dict[str, int] = {}
        usable: set[str] = set()  # GPU models within a guarantee over all
        for option in (*job.options, job.holds.option) if job.holds else job.options:
            gpus = option.config.number_gpus
            within = [model for model in _models(option) if gpus <= left.get(model, 0)]
            if not within or self._of_user(job, option) or not self._places.could_hold(option, job):
                continue
            if ALL_MODELS in within:
                usable.add(option.config.gpu_model)
            for model in within:
                least[model] = min(gpus, least.get(model, gpus))
        self._wanted[job.id] = least
        if len(usable) == 1:
            self._needs[job.id] = usable.pop(), job.team
            self.needed[self._needs[job.id]] += least[ALL_MODELS]
        for model, gpus in least.items():
            self.demand[model, job.team] += gpus
        self._refused.clear()

    def _left_of_guarantees(self, team: str) -> dict[str, int]:
        """The GPUs, by model, that the team's guarantees leave, where there are any."""
        left = (
            (model, quotas[team].guaranteed - self.held[model, team])
            for model, quotas in self.quotas.items()
            if team in quotas
        )
        return {model: gpus for model, gpus in left if gpus > 0}

    def _ask_again(self) -> None:
        """Keep for teams that gave GPUs back what their guarantees have room for by now."""
        for team in self._left_some:
            for job in list(self._asking[team].values()):
                if not self._has_room(team):
                    break
                self._want_no_more(job)
                self._want(job)
        self._left_some.clear()

    def _has_room(self, team: str) -> bool:
        """Is less kept for the team's jobs than it is guaranteed beyond what it holds?"""
        owed = ((model, quotas[team]) for model, quotas in self.quotas.items() if team in quotas)
        return any(
            self.held[model, team] + self.demand[model, team] < quota.guaranteed for model, quota in owed
        )

    def _want_no_more(self, job: JobInfo) -> None:
        self._asking[job.team].pop(job.id, None)
        wanted = self._wanted.pop(job.id, {})
        if job.id in self._needs:
            self.needed[self._needs.pop(job.id)] -= wanted[ALL_MODELS]
        for model, gpus in wanted.items():
            self.demand[model, job.team] -= gpus
        self._refused.clear()


def _models(option: Option) -> tuple[str, str]:
    return option.config.gpu_model, ALL_MODELS


def _gpu_s(job: JobInfo, option: Option) -> float:
    """GPU-seconds that the job is still going to use, as predicted."""
    duration_s = option.duration_s.value
    return duration_s * job.work_left * option.config.number_gpus if duration_s > 0 else 0.0


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers with the fewest decimals, of one to four, that tell them apart."""
    texts = [(f"{one:,.{digits}f}", f"{other:,.{digits}f}") for digits in range(1, 5)]
    return next((pair for pair in texts if len(set(pair)) > 1), texts[-1])
