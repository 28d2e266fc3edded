"""An administrator promotes a predictor and rolls back, and is asked first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from knowledge.core import store
from knowledge.models import PredictorVersion
from knowledge.promotion import promote
from tests.harness import world
from tests.portal.browser.looking import look, sign_in


@pytest.fixture
def versions(db: None) -> Iterator[list[PredictorVersion]]:
    """Three predictors with files, promoted one after the other; the third one answers."""
    folder = Path(settings.DATA_DIR, "predictors")
    folder.mkdir(exist_ok=True)
    made = []
    for number in (1, 2, 3):
        path = folder / f"predictor-{number}.skops"
        made.append(
            PredictorVersion.objects.create(
                number=number, path=path.name, sha256=store.save({}, path), rows=40,
                created_at=timezone.now(), metrics={"throughput_median_ape": 0.07}, reason="not worse",
            )
        )  # fmt: skip
        promote(made[-1], now=timezone.now())
    yield made
    for version in made:
        (folder / version.path).unlink(missing_ok=True)


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
    expect(page.get_by_text("answers from now on")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Promote predictor 1").click()
    expect(page.get_by_text("Predictor 1 answers from now on")).to_be_visible()
    for before in (3, 2):
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name=f"Roll back to predictor {before}").click()
        expect(page.get_by_text(f"Predictor {before} answers again")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="active")).to_contain_text("2")
    page.get_by_text("What answered when").click()
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
