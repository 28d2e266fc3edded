"""The table of types, its schemas, and where objects of events are shown."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import Resolver404, resolve
from jsonschema import Draft202012Validator

from portal.clock import database_now
from portal.events.links import PLACES, links
from portal.events.models import Event
from portal.events.services import give_positions, record
from portal.events.types import EVERYBODY, TYPES, EventType, subject
from tests.harness import event_schemas, world


def test_every_type_has_a_meaning_and_a_valid_schema() -> None:
    assert set(TYPES) == set(EventType)
    for type, meaning in TYPES.items():
        assert re.fullmatch(r"[a-z]+\.[a-z0-9_]+", type)
        assert meaning.text
        Draft202012Validator.check_schema(meaning.schema)
        assert set(meaning.needs) <= set(meaning.data), type


def test_data_that_do_not_fit_their_type_are_found() -> None:
    lost = Event(subject="ftjob-1", type=EventType.JOB_CHECKPOINT_LOST, data={"step": -1}, at=database_now)
    assert len(event_schemas.wrong(lost)) == 1
    lost.data = {"step": 4, "more": 1}
    assert len(event_schemas.wrong(lost)) == 1
    with pytest.raises(AssertionError, match="'step' is a required property"):
        record([Event(subject="ftjob-1", type=EventType.JOB_CHECKPOINT_LOST, data={}, at=database_now)])


SUBJECTS = {
    "job": "ftjob-1", "array": "ftarray-1", "node": "node-1", "predictor": subject("predictor", 3),
    "market": subject("market", 4), "quota": subject("team", 5), "budget": subject("user", 6),
}  # fmt: skip


def test_the_object_of_every_type_has_a_page_and_a_resource() -> None:
    assert {type.about for type in EventType} == set(SUBJECTS)
    of_quotas = [subject("user", 7), EVERYBODY]
    found = [Event(subject=SUBJECTS[type.about], type=type) for type in EventType]
    for event in found + [Event(subject=one, type=EventType.QUOTA_CHANGED) for one in of_quotas]:
        for address in links(event):
            route = resolve(address.partition("?")[0])
            assert not re.fullmatch(r"\^\.\*\$", str(route.route)), address
    assert set(PLACES) >= {"job", "node"}
    with pytest.raises(Resolver404):
        resolve("/nowhere/")


@pytest.mark.django_db
def test_links_lead_to_the_objects_themselves(client: Client) -> None:
    admin = world.admin()
    world.placed_job(world.fake_node(), owner=admin)
    give_positions()
    client.force_login(admin)
    for event in Event.objects.all():
        for address in links(event):
            answer = client.get(address)
            assert answer.status_code == 200, address
            assert event.subject in answer.content.decode()
