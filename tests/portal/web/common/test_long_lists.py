"""Lists of people and of their belongings.

They have pages, a search, and a bound on bytes and queries.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.accounts.models import ApiToken, Membership, Team, User
from portal.accounts.services import audit
from portal.events.models import Event
from scheduler.models import Checkpoint
from tests.harness import world

MANY = 300
LISTS = ("/users/", "/teams/", "/tokens/", "/audit/", "/policy/", "/history/", "/catalogue/")


@pytest.fixture
def crowd(admin: User) -> Team:
    """So many users, teams, tokens, entries of the record, and a team of everybody."""
    now = timezone.now()
    User.objects.bulk_create(User(username=f"person-{n:03}") for n in range(MANY))
    Team.objects.bulk_create(Team(name=f"team-{n:03}") for n in range(MANY))
    ApiToken.objects.bulk_create(
        ApiToken(owner=admin, name=f"token-{n:03}", digest=f"{n}", hint="ft-1", created_at=now)
        for n in range(MANY)
    )
    for number in range(60):
        audit(
            action="node drained", actor=admin, target=f"node-{number}", data={"reason": "x" * 500}, now=now
        )
    team = Team.objects.get(name="team-000")
    Membership.objects.bulk_create(Membership(team=team, user=user) for user in User.objects.all())
    return team


@pytest.mark.parametrize("path", LISTS)
def test_a_long_list_is_bounded_in_bytes_and_queries(path: str, browser: Client, crowd: Team) -> None:
    browser.get("/")
    with CaptureQueriesContext(connection) as queries:
        content = browser.get(path).content
    assert len(content) < 100_000
    assert len(queries) <= 14


def test_pages_of_a_team_and_of_a_person_are_bounded_too(browser: Client, crowd: Team) -> None:
    Membership.objects.bulk_create(
        Membership(team=team, user=User.objects.get(username="person-007"))
        for team in Team.objects.exclude(pk=crowd.pk)
    )
    person = User.objects.get(username="person-007")
    for path in (f"/teams/{crowd.pk}/", f"/users/{person.pk}/"):
        assert len(browser.get(path).content) < 100_000


@pytest.mark.parametrize(("path", "last"), [("/users/", "person-299"), ("/teams/", "team-299")])
def test_the_last_row_is_reached_by_pages_and_by_search(
    path: str, last: str, browser: Client, crowd: Team
) -> None:
    assert last not in browser.get(path).content.decode()
    assert last in browser.get(path, {"page": "999"}).content.decode()
    assert last in browser.get(path, {"q": last.upper()}).content.decode()
    assert "matches" in browser.get(path, {"q": "nobody at all"}).content.decode()
    second = browser.get(path, {"q": last[:4], "page": "2"}).content.decode()
    assert f"?q={last[:4]}&amp;page=3" in second


@pytest.mark.parametrize("path", ["/users/", "/teams/"])
@pytest.mark.parametrize("text", ["x" * 151, "a\x00b"])
def test_a_search_that_cannot_be_made_is_told_at_its_field(
    path: str, text: str, browser: Client, crowd: Team
) -> None:
    answer = browser.get(path, {"q": text})
    assert answer.status_code == 400
    assert b"invalid-feedback" in answer.content


def test_a_job_with_a_long_history_has_pages_as_small(browser: Client, person: User) -> None:
    job = world.placed_job(world.fake_node(), owner=person)
    attempt, now = job.attempts.get(), timezone.now()
    claim = attempt.claims.get()
    Event.objects.bulk_create(
        Event(subject=job.pk, number=n, type="job.checkpoint", reason="Placed on a node.", at=now)
        for n in range(100, 100 + MANY)
    )
    Checkpoint.objects.bulk_create(
        Checkpoint(job=job, attempt=attempt, claim=claim, step=n, files=[], at=now) for n in range(MANY)
    )
    for tab in ("events", "attempts"):
        content = browser.get(f"/jobs/{job.pk}/?tab={tab}").content
        assert len(content) < 100_000
    assert b"299" in content
