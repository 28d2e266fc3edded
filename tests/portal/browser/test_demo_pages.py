"""Every page of a portal full of data.

Each is without fault, pages in turns wide and light or narrow and dark (each in both with EXAMPLES=all), and
the keyboard is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from django.utils import timezone

from knowledge.models import PredictorVersion, TrackRecord
from portal.accounts.models import User
from portal.ops.demo.build import build
from portal.ops.launch import demo_simulation
from portal.ops.launch.pages import Shot, all_shots
from scheduler.models import Job
from tests.harness import world
from tests.harness.environment import EVERY_EXAMPLE
from tests.portal.browser.looking import APPEARANCES, look, sign_in

# Made by others: within our frame, but not ours to mend.
FOREIGN = {"api-docs", "all-tables"}
CHARTS = {"queue": 1, "analytics": 7, "predictions": 5}


def demo(jobs: int = 30) -> None:
    """Jobs in every state that has a page of its own, predictors, and an alarm."""
    build(seed=2, jobs=jobs, password="x", train=False, now=timezone.now())
    now = timezone.now()
    for number in (1, 2):
        version = PredictorVersion.objects.create(
            number=number, path="none", sha256="", rows=40, created_at=now, active=number == 2,
            metrics={"throughput_median_ape": 0.07}, reason="not worse on 12 held-out rows",
        )  # fmt: skip
        version.promotions.create(at=now)
    for days in range(3):
        TrackRecord.objects.create(
            day=now.date() - timedelta(days=days), runs=50, coverage=0.8 - 0.3 * (days == 0),
            median_error=0.1, alarm="" if days else "Only 25 of the last 50 runs ended inside.",
        )  # fmt: skip


def more() -> None:
    """Contents of some pages only: a simulation, and somebody who waits."""
    demo_simulation.main()
    world.job(User.objects.get(username="user"), name="next in line")
    assert {"running", "queued", "failed", "succeeded"} <= set(Job.objects.values_list("state", flat=True))


def by_person() -> list[tuple[str, list[Shot]]]:
    ours = sorted((shot for shot in all_shots() if shot.name not in FOREIGN), key=lambda shot: shot.person)
    return [(person, list(shots)) for person, shots in groupby(ours, lambda shot: shot.person)]


def test_every_page_is_whole_and_without_fault(opened: Any) -> None:
    demo()
    more()
    for person, shots in by_person():
        page, refused = opened(), opened(quiet=False)  # the browser itself complains of 403 and 404
        for view in (page, refused):
            if person:
                sign_in(view, person)
        for number, shot in enumerate(shots):
            seen = APPEARANCES if EVERY_EXAMPLE else APPEARANCES[number % 2 :][:1]
            visit(page if shot.status == 200 else refused, shot, seen)


def visit(page: Any, shot: Shot, appearances: Sequence[tuple[str, str]]) -> None:
    from playwright.sync_api import expect

    assert page.goto(shot.path).status == shot.status
    if shot.before:
        shot.before(page)
    count = CHARTS.get(shot.name, 0)
    if count:
        expect(page.locator("[data-chart-from]").nth(count - 1)).to_be_attached()
    for chart in page.locator("[data-chart-from]").all()[:count]:
        chart.evaluate("place => place.scrollIntoView()")  # it is drawn when it is near
        expect(chart.locator(".main-svg").first).to_be_attached()
    look(page, shot.name, appearances)


def test_analysis_pages_are_reached_and_used_by_keyboard(opened: Any) -> None:
    from playwright.sync_api import expect

    demo(jobs=5)
    page = opened()
    sign_in(page, "admin")
    expect(page.get_by_text("Demo data: simulated")).to_be_visible()
    tab_to(page, "Analytics")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Analytics")).to_be_visible()
    tab_to(page, "30d")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="30d")).to_have_attribute("aria-current", "true")
    tab_to(page, "The numbers as a table")
    page.keyboard.press("Enter")
    expect(page.locator(".chart-table").first).to_be_visible()


def tab_to(page: Any, text: str) -> None:
    """Press Tab until the element with that text has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip() == text:
            return
    raise AssertionError(f"{text} is not reached by Tab")
