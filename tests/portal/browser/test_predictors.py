"""An administrator promotes a predictor and rolls back, and is asked first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from knowledge.models import PredictorVersion
from tests.harness import world
from tests.portal.browser.looking import look, sign_in


@pytest.mark.slow
def test_a_predictor_is_promoted_and_rolled_back_step_by_step(
    opened: Any, versions: list[PredictorVersion]
) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    page = opened()
    sign_in(page)
    page.get_by_role("link", name="Analytics").click()
    page.get_by_role("link", name="Predictions").click()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Promote predictor 1").click()
    expect(page.get_by_text("is now active")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Promote predictor 1").click()
    expect(page.get_by_text("Predictor 1 is now active")).to_be_visible()
    for before in (3, 2):
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name=f"Roll back to predictor {before}").click()
        expect(page.get_by_text(f"Predictor {before} is active again")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="active")).to_contain_text("2")
    page.get_by_text("Promotion history").click()
    expect(page.get_by_role("cell", name="ada")).to_be_visible()
    look(page, "predictions-rolled-back")


def test_a_predictor_whose_file_is_gone_is_not_promoted(
    opened: Any, versions: list[PredictorVersion]
) -> None:
    from playwright.sync_api import expect

    Path(settings.DATA_DIR, "predictors", versions[0].path).unlink()
    world.user("ada", is_staff=True)
    page = opened()
    sign_in(page)
    page.goto("/analytics/predictions/")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Promote predictor 1").click()
    expect(page.get_by_text("The file of predictor 1 is gone or damaged")).to_be_visible()
