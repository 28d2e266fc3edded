"""Changes that would let a waiting job start sooner, for the reader of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings

from knowledge.core.domain.wording import money, rough_time
from portal.accounts.models import User
from scheduler.core.changes.possible import ChangeKind
from scheduler.core.cycle.wait_reasons import counted_gpus
from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import ChangeSearch, Decision, Job
from scheduler.selectors.dependencies import dependencies_of
from scheduler.selectors.jobs import DETAILS, may_change, visible_jobs
from scheduler.selectors.quotas import highest_class, longest_run_s
from scheduler.states import STOPPABLE, JobState, PriorityClass

A_MINUTE = timedelta(minutes=1)
REPEAT = A_MINUTE  # after which an answer is made anew although nothing was decided
FIELDS = {"deadline_at": "its deadline"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedChange:
    """One change, in words, with the start that it brings and what it costs.

    change: the body of the verb `change`, if it is one of the job itself. may: whether the reader may do it;
    of another job that would have to end, whether the reader may pause it. about: that job, if the reader
    sees it. subject: as `PossibleChange` has it. sooner_s None: there is no forecast without it. at_once:
    within a minute. delayed, delay_s: jobs that would start later, and by how long all together. unfinished:
    the chance that its time limit ends it before it is done.
    """

    kind: str
    subject: str
    text: str
    change: Mapping[str, Any]
    may: bool
    about: Job | None
    at_once: bool
    start_at: datetime
    start_low: datetime
    start_high: datetime | None
    end_at: datetime | None
    sooner_s: float | None
    duration_s: float | None
    cost: float | None
    delayed: float
    delay_s: float
    unfinished: float


class OfferedChanges(NamedTuple):
    """Changes that help, best first; `computing`: better ones are being found.

    trouble: why none could be looked for.
    """

    offers: list[OfferedChange]
    made_at: datetime | None = None
    computing: bool = False
    trouble: str = ""


def is_fresh(row: ChangeSearch, now: datetime) -> bool:
    """Is the job the same as then, and has no plan been made since?"""
    if row.made_at is None or row.version != row.job.version or now - row.made_at >= REPEAT:
        return False
    return not Decision.objects.filter(at__gt=row.made_at).exists()


def changes_of(job: Job, user: User, now: datetime) -> OfferedChanges:
    """The changes found for a job that waits; none for another one."""
    if job.state != JobState.QUEUED:
        return OfferedChanges([])
    row = ChangeSearch.objects.filter(job=job).first()
    if row is None or row.made_at is None or row.version != job.version:
        return OfferedChanges([], computing=True)
    row.job = job
    named = [one["subject"] for one in row.found if one["kind"] == ChangeKind.JOB]
    seen = visible_jobs(user).defer(*DETAILS).select_related("team").in_bulk(named) if named else {}
    rights = _rights(job, user, row.found, seen)
    offers = [_offered(one, seen, rights, now) for one in row.found]
    return OfferedChanges(offers, row.made_at, not is_fresh(row, now), row.trouble)


class _Rights(NamedTuple):
    """The acts that a reader may do.

    longest_s: a time limit; None: any. pause: ids of other jobs.
    """

    admin: bool
    change: bool
    highest: int
    longest_s: int | None
    pause: frozenset[str]

    def of(self, kind: str, subject: str, change: Mapping[str, Any]) -> bool:
        if kind in (ChangeKind.RELEASE, ChangeKind.QUOTA, ChangeKind.WINDOW):
            return self.admin
        if kind == ChangeKind.JOB:
            return subject in self.pause
        if "priority" in change and PriorityClass.of_word(change["priority"]) > self.highest:
            return False
        if "max_run_s" in change and self.longest_s is not None and change["max_run_s"] > self.longest_s:
            return self.admin
        return bool(change) and self.change


def _rights(job: Job, user: User, found: Sequence[Mapping[str, Any]], seen: Mapping[str, Job]) -> _Rights:
    limited = any("max_run_s" in one["change"] for one in found)
    return _Rights(
        admin=user.is_admin,
        change=may_change(user, job),
        highest=highest_class(user) if found else 0,
        longest_s=longest_run_s(user) if limited else None,
        pause=_pausable(job, user, seen),
    )


def _pausable(job: Job, user: User, others: Mapping[str, Job]) -> frozenset[str]:
    """The running jobs that the reader may pause.

    A pause of one that it comes after would only delay it.
    """
    mine = [one for one in others.values() if one.state in STOPPABLE and may_change(user, one)]
    if not mine:
        return frozenset()
    after = dependencies_of(job)
    awaited = {one.on_id for one in after} | {one.on_array_id for one in after if one.on_array_id}
    return frozenset(one.pk for one in mine if not awaited & {one.pk, one.array_id})


def _offered(
    one: Mapping[str, Any], seen: Mapping[str, Job], rights: _Rights, now: datetime
) -> OfferedChange:
    about = seen.get(one["subject"])
    start, low, high = (_at(seconds) for seconds in one["start"])
    end = _at(one["end"][0]) if one["end"] else None
    return OfferedChange(
        kind=one["kind"],
        subject=one["subject"],
        text=_in_words(one, about),
        change=one["change"],
        may=rights.of(one["kind"], one["subject"], one["change"]),
        about=about,
        at_once=start is None or start <= now + A_MINUTE,
        start_at=max(start or now, now),
        start_low=max(low or now, now),
        start_high=high and max(high, now),
        end_at=end,
        sooner_s=one["sooner_s"],
        duration_s=one["duration_s"],
        cost=one["cost"],
        delayed=one["delayed"],
        delay_s=one["delay_s"],
        unfinished=one.get("unfinished", 0.0),
    )


def _in_words(one: Mapping[str, Any], about: Job | None) -> str:
    kind, subject = ChangeKind(one["kind"]), one["subject"]
    words: dict[ChangeKind, Callable[[], str]] = {
        ChangeKind.PLACEMENT: lambda: f"On {_place(one['change']['params'])}",
        ChangeKind.OPEN: lambda: f"Without {FIELDS.get(subject) or _fixed(subject)}",
        ChangeKind.FIXED: lambda: f"With {_values(one['change']['params'])}",
        ChangeKind.BUDGET: lambda: f"With a budget of {money(float(subject), settings.CURRENCY)}",
        ChangeKind.DEADLINE: lambda: f"With its deadline at {subject}",
        ChangeKind.LIMIT: lambda: f"With a time limit of {rough_time(int(subject))}",
        ChangeKind.STOPPABLE: lambda: "If it may be stopped for others",
        ChangeKind.CLOSE: lambda: (
            f"With GPUs in one {TopologyLevel.of_word(subject).phrase} only if possible"
        ),
        ChangeKind.GOAL: lambda: f"With the goal {subject}",
        ChangeKind.CLASS: lambda: f"In the class {subject}",
        ChangeKind.SPOT: lambda: "On spot nodes, too, which may be withdrawn",
        ChangeKind.QUOTA: lambda: f"With a higher limit of its {'owner' if subject == 'user' else 'team'}",
        ChangeKind.RELEASE: lambda: "If it is released",
        ChangeKind.BEGIN: lambda: "Without its time to begin",
        ChangeKind.WINDOW: lambda: f"Without this window: {subject}",
        ChangeKind.JOB: lambda: f"If {about or 'a job of another person'} ended now",
    }
    return words[kind]()


def _place(params: Mapping[str, Any]) -> str:
    text, nodes = counted_gpus(params["number_gpus"], params["gpu_model"]), params["number_nodes"]
    return text if nodes == 1 else f"{text} on {nodes} nodes"


def _fixed(subject: str) -> str:
    return f"the fixed value of {subject.removeprefix('params.').replace('_', ' ')}"


def _values(params: Mapping[str, Any]) -> str:
    said = (
        f"{name.replace('_', ' ')} {'left open' if value is None else value}"
        for name, value in params.items()
    )
    return ", ".join(said)


def _at(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)
