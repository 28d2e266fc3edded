"""Names are refused at their fields, on pages and over REST, by one rule."""

from __future__ import annotations

import io

import pytest

from portal.accounts.models import User
from portal.api.jobs.requests import JobIn
from portal.api.people.me import TokenIn
from portal.api.people.teams import TeamIn
from portal.clock import database_now
from portal.web.jobs.forms import SubmitForm
from portal.web.people.forms import NewUserForm, TeamForm, TokenForm
from scheduler.errors import BadParameters
from scheduler.services.files.uploads import store_file

HIDDEN = "ad\u202emin"
TOLD = "RIGHT-TO-LEFT OVERRIDE"


@pytest.mark.parametrize("form", [TeamForm, TokenForm])
def test_a_form_refuses_it_at_the_field(form: type[TeamForm | TokenForm]) -> None:
    filled = form({"name": HIDDEN})
    assert TOLD in filled.errors["name"][0]
    assert form({"name": "Pru\u0308fung"}).fields["name"].clean("Pru\u0308fung") == "Prüfung"


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
