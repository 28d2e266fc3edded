"""Queue, analytics and predictions through the Django test client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from knowledge.models import PredictorVersion
from portal.accounts.models import AuditEntry, User
from portal.ops.demo import marker
from portal.ops.demo.build import build
from tests.harness import world

PAGES = ("/queue/", "/analytics/?range=all", "/analytics/predictions/?range=all")
LANES = "/queue/?lanes=now"  # what htmx asks for
HTMX = {"HX-Request": "true"}
LISTS = (*PAGES, LANES, "/jobs/", "/nodes/")


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_for_people_who_signed_in(path: str, client: Client, db: None) -> None:
    assert client.get(path)["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("path", PAGES)
def test_pages_of_an_empty_portal_say_so(path: str, browser: Client) -> None:
    page = browser.get(path)
    assert page.status_code == 200
    assert b"data-chart-from" not in page.content


def test_the_queue_shows_places_and_hides_whose_jobs_they_are(browser: Client, person: User) -> None:
    world.job(name="secret plan")
    world.job(person, name="my plan")
    page = browser.get("/queue/").content.decode()
    assert "secret plan" not in page
    assert page.index("another user's job") < page.index("my plan")
    fragment = browser.get("/queue/", headers=HTMX).content.decode()
    assert "my plan" in fragment
    assert "<html" not in fragment


def test_lanes_show_strangers_jobs_without_their_names(browser: Client, person: User) -> None:
    node = world.fake_node(name="gpu-box")
    world.placed_job(node, name="secret plan")
    world.placed_job(node, owner=person, name="my plan")
    page = browser.get(LANES, headers=HTMX).content.decode()
    assert "secret plan" not in page
    assert "my plan, GPU" in page
    assert "Of the GPUs shown, 2 of 2 are allocated now" in page


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 50])
def test_an_absurd_page_shows_the_nearest_one(page: str, browser: Client, person: User) -> None:
    world.job(person, name="my plan")
    assert b"my plan" in browser.get("/queue/", {"page": page, "nodes": page}).content
    assert browser.get(LANES, {"lanes": "now", "nodes": page}, headers=HTMX).status_code == 200


@pytest.mark.parametrize("path", PAGES[1:])
def test_a_wrong_period_is_told_and_the_page_still_stands(path: str, browser: Client) -> None:
    answer = browser.get(path.split("?")[0], {"from": "tomorrow"})
    assert answer.status_code == 400
    assert b"from must be a date such as" in answer.content
    too_early = browser.get(path.split("?")[0], {"to": "0001-01-02"})
    assert b"must lie before the end" in too_early.content or too_early.status_code == 200


@pytest.fixture
def admin_browser(db: None) -> Client:
    client = Client()
    client.force_login(world.user("root", is_staff=True))
    return client


def active() -> int:
    return PredictorVersion.objects.get(active=True).number


def test_an_administrator_promotes_and_rolls_back(
    admin_browser: Client, versions: list[PredictorVersion]
) -> None:
    page = admin_browser.get(PAGES[2]).content.decode()
    assert "7%" in page
    answer = admin_browser.post("/analytics/predictions/1/promote/", follow=True)
    assert b"Predictor 1 is now active" in answer.content
    assert active() == 1
    admin_browser.post("/analytics/predictions/rollback/")
    assert active() == 3
    actions = list(AuditEntry.objects.order_by("id").values_list("action", "target"))
    assert actions == [("predictor promoted", "predictor 1"), ("predictor rolled back", "predictor 3")]


def test_rolling_back_again_goes_further_back_and_the_history_stays(
    admin_browser: Client, versions: list[PredictorVersion]
) -> None:
    roll_back = "/analytics/predictions/rollback/"
    for before in (2, 1):
        assert f"Roll back to predictor {before}" in admin_browser.get(PAGES[2]).content.decode()
        admin_browser.post(roll_back, {"seen": str(before + 1)})
        assert active() == before
    assert "Roll back to" not in (page := admin_browser.get(PAGES[2]).content.decode())
    assert b"nothing to roll back to" in admin_browser.post(roll_back, follow=True).content
    assert page.count("<td>training</td>") == 3
    admin_browser.post("/analytics/predictions/3/promote/")
    admin_browser.post(roll_back)
    assert active() == 1, "2 was rolled back before 3 was promoted anew"


def test_two_administrators_who_roll_back_at_once_go_back_once(
    admin_browser: Client, versions: list[PredictorVersion]
) -> None:
    for _ in range(2):
        answer = admin_browser.post("/analytics/predictions/rollback/", {"seen": "3"}, follow=True)
    assert b"Predictor 2 answers by now, not 3" in answer.content
    assert active() == 2


def test_a_predictor_without_its_file_is_not_promoted(
    admin_browser: Client, versions: list[PredictorVersion]
) -> None:
    for version in versions[:2]:
        Path(settings.DATA_DIR, "predictors", version.path).unlink()
    for path in ("1/promote/", "3/promote/", "rollback/"):
        answer = admin_browser.post(f"/analytics/predictions/{path}", follow=True)
        assert b"alert-warning" in answer.content
    assert active() == 3
    assert not AuditEntry.objects.exists()
    assert admin_browser.post("/analytics/predictions/9/promote/").status_code == 404


def test_only_administrators_change_predictors(browser: Client, versions: list[PredictorVersion]) -> None:
    assert b"Promote</button>" not in browser.get(PAGES[2]).content
    for path in ("1/promote/", "rollback/"):
        assert browser.post(f"/analytics/predictions/{path}").status_code == 403
        assert browser.get(f"/analytics/predictions/{path}").status_code == 405
    assert active() == 3


def queries_on_a_demo_portal(jobs: int) -> dict[str, int]:
    """Return the number of queries of each list on a demo portal.

    Each list is asked for by an administrator and by a person; the portal is rolled back.
    """
    counts = {}
    with transaction.atomic():
        build(seed=3, jobs=jobs, password="x", train=False, now=timezone.now())
        world.job(User.objects.get(username="ada"))  # so that somebody waits, however few there are
        for name in ("admin", "ada"):
            client = Client()
            client.force_login(User.objects.get(username=name))
            for path in LISTS:
                more: dict[str, Any] = {"headers": HTMX} if path == LANES else {}
                client.get(path, **more)  # first visits remember things
                cache.clear()
                marker.is_demo()
                with CaptureQueriesContext(connection) as seen:
                    assert client.get(path, **more).status_code == 200
                counts[f"{name} {path}"] = len(seen)
        transaction.set_rollback(True)
    return counts


@pytest.mark.one_database
def test_the_number_of_queries_does_not_grow_with_the_rows(db: None) -> None:
    few, many = queries_on_a_demo_portal(3), queries_on_a_demo_portal(8)
    assert few == many
    assert max(many.values()) <= 13, many


def test_signing_in_to_a_demo_portal_says_so_too(client: Client, db: None) -> None:
    marker.mark(actor=world.admin(), seed=1, now=timezone.now())
    assert b"Demo data: simulated" in client.get("/login/").content
