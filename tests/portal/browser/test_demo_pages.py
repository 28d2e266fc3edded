"""Every page of a portal full of data: no fault in light or dark, wide or narrow, with the keyboard alone."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from knowledge.models import PredictorVersion
from portal.demo.world import build
from scheduler.models import Job, Node
from tests.harness import world
from tests.portal.browser.looking import look, sign_in

PAGES = (
    "/", "/jobs/", "/jobs/?state=failed", "/jobs/new/", "/queue/", "/nodes/", "/analytics/?range=all",
    "/analytics/predictions/?range=all", "/users/", "/teams/", "/tokens/", "/audit/", "/password/",
)  # fmt: skip
CHARTS = {"/queue/": 1, "/analytics/?range=all": 7, "/analytics/predictions/?range=all": 4}


def demo() -> None:
    build(seed=5, jobs=20, password="x", train=False, now=timezone.now())
    predictors()


def predictors() -> None:
    """Two versions, whose files are gone."""
    now = timezone.now()
    for number in (1, 2):
        PredictorVersion.objects.create(
            number=number, path="none", sha256="", rows=40, created_at=now, active=number == 2,
            metrics={"throughput_median_ape": 0.07}, reason="not worse on 12 held-out rows",
        )  # fmt: skip


def test_every_page_is_whole_and_without_fault(page: Any) -> None:
    from playwright.sync_api import expect

    demo()
    sign_in(page, "admin")
    expect(page.get_by_text("Demo data: simulated")).to_be_visible()
    job = Job.objects.filter(state="succeeded").order_by("pk").first()
    node = Node.objects.order_by("name").first()
    assert job
    assert node
    for path in (*PAGES, f"/jobs/{job.pk}/", f"/nodes/{node.pk}/"):
        page.goto(path, wait_until="networkidle")
        for chart in page.locator("[data-chart-from]").all()[: CHARTS.get(path, 0)]:
            expect(chart.locator(".main-svg").first).to_be_attached()
        look(page, path.split("?")[0].strip("/").replace("/", "-") or "home")


def test_promoting_asks_first(opened: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    predictors()
    page = opened()
    sign_in(page)
    page.get_by_role("link", name="Analytics").click()
    page.get_by_role("link", name="Predictions").click()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Promote predictor 1").click()
    expect(page.get_by_text("is gone or damaged")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Promote predictor 1").click()
    expect(page.get_by_text("The file of predictor 1 is gone or damaged")).to_be_visible()


def test_analysis_pages_are_reached_and_used_by_keyboard(opened: Any) -> None:
    from playwright.sync_api import expect

    demo()
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
