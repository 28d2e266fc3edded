"""Names are refused at their fields, on pages and over REST, by one rule."""

from __future__ import annotations

import io

import pytest
from django import forms
from django.test import Client
from rest_framework import serializers
from rest_framework.test import APIClient

from portal.accounts.models import Team, User
from portal.api.common.pages import PageQuery
from portal.api.jobs.requests import JobIn
from portal.api.people.me import TokenIn
from portal.api.people.teams import TeamIn
from portal.clock import database_now
from portal.web.common.form_base import FilterForm
from portal.web.jobs.filters import JobFilters
from portal.web.jobs.forms import SubmitForm
from portal.web.jobs.log import LogSearch
from portal.web.nodes.filters import NodeFilters
from portal.web.people.forms import NewUserForm, TeamForm
from portal.web.people.token_forms import TokenForm
from scheduler.errors import BadParameters
from scheduler.services.files.uploads import store_file
from tests.harness import world

HIDDEN = "ad\u202emin"
TOLD = "RIGHT-TO-LEFT OVERRIDE"
PERSIAN = "\u062f\u0627\u062f\u0647\u200c\u0647\u0627 \u2764\ufe0f"
TYPED = "cafe\u0301"  # as text copied on macOS has it; kept as one character


@pytest.mark.django_db
def test_a_form_refuses_it_at_the_field() -> None:
    owner = world.user("ada")
    for form in (TeamForm({"name": HIDDEN}), TokenForm({"name": HIDDEN}, owner=owner)):
        assert TOLD in form.errors["name"][0]
        assert form.fields["name"].clean("Pru\u0308fung") == "Prüfung"


def test_the_name_of_a_person_is_refused_too() -> None:
    assert TOLD in NewUserForm({"username": HIDDEN}).errors["username"][0]


@pytest.mark.parametrize("serializer", [JobIn, TeamIn, TokenIn])
def test_rest_refuses_it_at_the_field(serializer: type[JobIn | TeamIn | TokenIn]) -> None:
    reported = serializer(data={"name": HIDDEN})
    assert not reported.is_valid()
    assert TOLD in str(reported.errors["name"][0])


@pytest.mark.django_db
def test_a_job_and_a_file_are_refused_at_their_fields() -> None:
    owner = User.objects.create_user("ada")
    assert TOLD in SubmitForm({"name": HIDDEN}, user=owner).errors["name"][0]
    with pytest.raises(BadParameters, match=TOLD):
        store_file(owner=owner, stream=io.BytesIO(b"{}"), filename=HIDDEN, now=database_now())


@pytest.mark.django_db
def test_joiners_and_hearts_are_kept_by_every_name() -> None:
    owner = User.objects.create_user("ada")
    for form in (TeamForm({"name": PERSIAN}), TokenForm({"name": PERSIAN}, owner=owner)):
        assert form.fields["name"].clean(PERSIAN) == PERSIAN
    assert "name" not in SubmitForm({"name": PERSIAN}, user=owner).errors
    for serializer in (JobIn, TeamIn, TokenIn):
        reported = serializer(data={"name": PERSIAN})
        reported.is_valid()
        assert "name" not in reported.errors
    stored = store_file(
        owner=owner, stream=io.BytesIO(b'{"text": "a"}\n'), filename=PERSIAN, now=database_now()
    )
    assert stored.filename == PERSIAN


@pytest.mark.django_db
def test_searches_find_a_name_however_it_was_typed(admin_browser: Client, admin_api: APIClient) -> None:
    owner = world.user("caf\u00e9")
    world.job(owner, name="caf\u00e9")
    Team.objects.create(name="caf\u00e9", created_at=database_now())
    world.fake_node(name="caf\u00e9")
    shown = lambda address: admin_browser.get(address).content.count(b"caf\xc3\xa9")  # noqa: E731
    for address in ("/jobs/?q=", "/jobs/?owner=", "/users/?q=", "/teams/?q=", "/nodes/?q="):
        assert shown(address + TYPED) == shown(address + "caf\u00e9") - 1 > 0, address  # less the filter
    assert admin_api.get("/api/users/", {"username": TYPED}).json()["total"] == 1
    assert admin_api.get("/api/nodes/", {"text": TYPED}).json()["total"] == 1


@pytest.mark.parametrize("form", [JobFilters, NodeFilters, LogSearch, *FilterForm.__subclasses__()])
def test_every_text_of_a_filter_is_searched_for_as_names_are_kept(form: type[forms.Form]) -> None:
    texts = [
        name
        for name, field in form.base_fields.items()
        if type(field) is forms.CharField and isinstance(field.widget, forms.TextInput)
    ]
    assert set(texts) <= {"after"}


def test_so_is_every_text_of_a_query() -> None:
    queries = (PageQuery, *PageQuery.__subclasses__())
    texts = [
        name
        for one in queries
        for name, field in one().fields.items()
        if type(field) is serializers.CharField
    ]
    assert set(texts) == {"after"}
