"""Jobs' options as values, parsed once.

Most of a long queue is the same from tick to tick.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Manager

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from scheduler.models import Attempt, Job, PendingStart
from scheduler.selectors.jobs import JobColumns

SLICE = 1000  # ids a query: databases limit the number of values


class JobOptions(NamedTuple):
    """The options of a job, and the cost that its owner accepted.

    The cost is that of the promise at submission.
    """

    options: tuple[Option, ...] = ()
    promised_cost: float | None = None


# job -> (version, inventory and predictor, options): both change whenever the options or the binding do.
_parsed: dict[str, tuple[int, str, JobOptions]] = {}


class _Promised:
    """The options that rows of one kind keep, read and parsed once.

    They never change. Rows that are not asked for are forgotten.
    """

    def __init__(self, rows: Manager[Attempt] | Manager[PendingStart]) -> None:
        self.rows = rows
        self._known: dict[Hashable, Option] = {}

    def of(self, keys: Mapping[Hashable, Any]) -> Mapping[Hashable, Option]:
        """The options of those rows that are still there.

        keys: tell rows for ever apart; each has the row's own.
        """
        known, unknown = self._known, [key for key in keys if key not in self._known]
        for start in range(0, len(unknown), SLICE):
            names = {keys[key]: key for key in unknown[start : start + SLICE]}
            rows = self.rows.filter(pk__in=names).order_by().values_list("pk", "option")
            known |= {names[pk]: read_option(raw) for pk, raw in rows}
        self._known = {key: known[key] for key in keys if key in known}
        return self._known


_of_attempts = _Promised(Attempt.objects)
_of_pending_starts = _Promised(PendingStart.objects)


def with_promises(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The attempts with their options, which need not be read with them."""
    found = list(attempts)
    promised = _of_attempts.of({attempt.pk: attempt.pk for attempt in found})
    for attempt in found:
        if attempt.pk in promised:
            attempt.promised = promised[attempt.pk]
    return found


def options_kept_for(starts: Iterable[tuple[int, str, datetime]]) -> Mapping[Hashable, Option]:
    """The options of pending starts.

    starts: of each its number, its job and when it was made: a number alone may come again.
    """
    return _of_pending_starts.of({start: start[0] for start in starts})


def options_of(jobs: Iterable[JobColumns]) -> dict[str, JobOptions]:
    """Return the options of each job.

    For a job that ran before, the option it ran with comes first. Only options not known yet
    are read. Jobs that are not asked for are forgotten.
    """
    wanted = {job.pk: (job.version, job.options_for) for job in jobs}
    for gone in _parsed.keys() - wanted.keys():
        del _parsed[gone]
    unknown = [pk for pk, key in wanted.items() if pk not in _parsed or _parsed[pk][:2] != key]
    for start in range(0, len(unknown), SLICE):
        _read(unknown[start : start + SLICE])
    return {pk: _parsed[pk][2] if pk in _parsed else JobOptions() for pk in wanted}


def _read(job_ids: list[str]) -> None:
    rows = Job.objects.filter(pk__in=job_ids)
    for job in rows.only("version", "options_for", "options", "binding", "promise"):
        promised = job.promised.cost.value if job.promised else None
        _parsed[job.pk] = (job.version, job.options_for, JobOptions(_options(job), promised))


def _options(job: Job) -> tuple[Option, ...]:
    """Return a job's options, the one that it ran with first.

    A checkpoint can be resumed on any of them: only values that bind at submission decide what
    is learnt.
    """
    options = tuple(map(read_option, job.options))
    if not job.binding:
        return options
    before = read_option(job.binding)
    return (before, *(option for option in options if option.place != before.place))
