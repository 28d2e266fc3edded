"""Jobs' options as values, parsed once: most of a long queue is the same from tick to tick."""

from __future__ import annotations

from collections.abc import Iterable

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from scheduler.models import Job

SLICE = 1000  # ids a query: databases limit the number of values

# job -> (version, inventory and predictor, options): both change whenever the options or the binding do.
_parsed: dict[str, tuple[int, str, tuple[Option, ...]]] = {}


def options_of(jobs: Iterable[Job]) -> dict[str, tuple[Option, ...]]:
    """The options of each job, of one that ran before that option first; only those not known yet are read.

    The jobs need `version` and `options_for`. Jobs that are not asked for are forgotten.
    """
    wanted = {job.pk: (job.version, job.options_for) for job in jobs}
    for gone in _parsed.keys() - wanted.keys():
        del _parsed[gone]
    unknown = [pk for pk, key in wanted.items() if pk not in _parsed or _parsed[pk][:2] != key]
    for start in range(0, len(unknown), SLICE):
        _read(unknown[start : start + SLICE])
    return {pk: _parsed[pk][2] if pk in _parsed else () for pk in wanted}


def _read(job_ids: list[str]) -> None:
    for job in Job.objects.filter(pk__in=job_ids).only("version", "options_for", "options", "binding"):
        _parsed[job.pk] = (job.version, job.options_for, _options(job))


def _options(job: Job) -> tuple[Option, ...]:
    """A checkpoint can be resumed on any of them: what binds at submit alone decides what is learnt."""
    options = tuple(map(read_option, job.options))
    if not job.binding:
        return options
    before = read_option(job.binding)
    return (before, *(option for option in options if option.key != before.key))
