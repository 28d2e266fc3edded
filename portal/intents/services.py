"""Reading what a person says.

It is read in the setting of their own files, teams and nodes; nothing is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from django.conf import settings

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.language.consent import server_for
from portal.accounts.models import User
from portal.accounts.selectors import own_teams
from portal.intents.core.types import STATED, IntentReading, NodeKind, Offer, Question, Setting
from portal.intents.draft import body_of, complaints, place_complaints
from portal.intents.language_model import helped_reading
from scheduler.core.job_terms import wants_spot
from scheduler.models import ReadSource
from scheduler.selectors.cluster.inventory import inventory
from scheduler.selectors.files import file_labels, visible_files
from scheduler.selectors.jobs import visible_jobs
from scheduler.services.jobs.recommend import clean_request
from scheduler.services.provenance.read_values import ReadValue, ReadValues
from trainer.recipes import DEFAULT_RECIPE

MOST_FILES, MOST_JOBS, MOST_OFFERS = 10_000, 50, 8
FILES = ("training_file", "validation_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """A reading for a person.

    It has their files by id, every complaint, the one question, with ids as the values of files, and the
    body of a submission.
    """

    said: str
    reading: IntentReading
    file_ids: Mapping[str, str]
    question: Question | None
    complaints: Mapping[str, str]
    draft: Mapping[str, Any]

    @property
    def read_values(self) -> ReadValues:
        """The values as a submission takes them, with the words that they come from."""
        submitted = {**self.draft, **self.draft.get("params", {})}
        values = {
            name: ReadValue(value=submitted[name], origin=one.origin, because=one.because(self.said))
            for name, one in self.reading.fields.items()
        }
        return ReadValues(source=ReadSource.SENTENCE, values=values, said=self.said)


def understand(*, user: User, text: str, now: datetime, zone: tzinfo) -> Understood:
    """Read a sentence for a person. Its values are judged as those of a submission."""
    files = _files(user)
    ids = {name: pks[0] for name, pks in files.items()}  # of equal names the newest
    setting = _setting(user, tuple(ids), now, zone)
    reading, question = _told_apart(user, helped_reading(text, setting, server_for(user, "intent")), files)
    body = body_of(reading.fields)
    for name in FILES:
        if name in body:
            body[name] = ids[body[name]]
    spot = wants_spot({name: one.value for name, one in reading.fields.items()})
    places = place_complaints(reading.fields, lambda: inventory(spot=spot), portal_catalogue())
    complaints = {**places, **reading.complaints, **_judged(reading, now)}
    return Understood(
        said=text, reading=reading, file_ids=ids, question=question, complaints=complaints, draft=body
    )


def _files(user: User) -> Mapping[str, Sequence[str]]:
    """The ids of the person's files by name, both newest first."""
    found: dict[str, list[str]] = {}
    for name, pk in visible_files(user).values_list("filename", "pk")[:MOST_FILES]:
        found.setdefault(name, []).append(pk)
    return found


def _told_apart(
    user: User, reading: IntentReading, files: Mapping[str, Sequence[str]]
) -> tuple[IntentReading, Question | None]:
    """Ask back which file is meant where several have the name that was said.

    The question has ids as the values of files.
    """
    question = reading.question
    for name in FILES:
        one = reading.fields.get(name)
        if one is None or one.origin != STATED or len(files[one.value]) == 1:
            continue
        others = {field: value for field, value in reading.fields.items() if field != name}
        reading = replace(reading, fields=others)
        if question is None:
            text = f"Which of the files named {one.value}?"
            question = Question(field=name, text=text, choices=_offers(user, name, [one.value], files))
        else:
            note = f"{len(files[one.value])} files are named {one.value}: choose one in the form."
            reading = replace(reading, notes=(*reading.notes, note))
    if question is not None and question is reading.question and question.field in FILES:
        names = [offer.value for offer in question.choices]
        question = replace(question, choices=_offers(user, question.field, names, files))
    return reading, question


def _offers(
    user: User, field: str, names: Sequence[str], files: Mapping[str, Sequence[str]]
) -> tuple[Offer, ...]:
    """An answer for each file of these names.

    It is the name alone where that tells them apart.
    """
    pks = [pk for name in names for pk in files[name]][:MOST_OFFERS]
    rows = visible_files(user).filter(pk__in=pks).defer("lengths").select_related("owner", "team")
    labels, named = file_labels(rows, user), {pk: name for name in names for pk in files[name]}
    return tuple(
        Offer(field=field, value=pk, label=named[pk] if len(files[named[pk]]) == 1 else labels[pk])
        for pk in pks
        if pk in labels
    )


def _judged(reading: IntentReading, now: datetime) -> dict[str, str]:
    model = reading.fields.get("model")

    def clean(params: Mapping[str, Any]) -> Mapping[str, Any]:
        if model is None:
            return DEFAULT_RECIPE.clean(params)
        return clean_request(model=model.value, params=params)

    return complaints(reading.fields, now, clean)


def _setting(user: User, files: tuple[str, ...], now: datetime, zone: tzinfo) -> Setting:
    jobs = visible_jobs(user).order_by("-submitted_at")
    newest = jobs.filter(owner=user, training_file__deleted_at=None).select_related("training_file").first()
    last = newest.training_file.filename if newest and newest.training_file else None
    return Setting(
        now=now,
        zone=zone,
        catalogue=portal_catalogue(),
        files=files,
        nodes=_nodes(),
        newest_job_file=last if last in files else None,
        teams=tuple(own_teams(user).values_list("name", flat=True)),
        currency=settings.CURRENCY,
        ran_models=tuple(dict.fromkeys(jobs.values_list("model", flat=True)[:MOST_JOBS])),
    )


def _nodes() -> tuple[NodeKind, ...]:
    return tuple(
        NodeKind(gpu_model=pool.gpu_model, gpus=size, nodes=pool.node_sizes.count(size))
        for pool in inventory().pools
        for size in sorted(set(pool.node_sizes))
    )
