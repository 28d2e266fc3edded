"""`run.py screenshots` leaves no page out."""

from __future__ import annotations

import pytest
from django.urls import URLPattern

from portal.ops.launch.pages import JOB_TABS, all_shots
from portal.web.jobs.tabs import TABS
from portal.web.urls import urlpatterns

# Views that answer with a part of a page, or act and go elsewhere.
PARTS = {
    "job-intent",
    "job-upload",
    "job-file",
    "job-recommendation",
    "job-plans",
    "job-start",
    "job-start-answer",
    "job-changes",
    "job-live",
    "job-tab",
    "job-chart",
    "node-live",
    "node-calibration",
    "join-token",
    "job-import-kept",  # the page of an import, once more
    "client",
    "client-wheel",
}
ACTS = {"logout", "job-verb", "user-change", "user-verb", "team-verb", "member-verb", "token-revoke",
        "token-rotate", "service-account-verb", "service-account-token",
        "user-token-revoke", "predictor-rollback", "predictor-promote", "node-verb", "node-calibrate",
        "calibration-cancel", "catalogue-add", "catalogue-delete", "file-delete",
        "window-remove", "market-remove",
        "array-cancel", "execution-confirm", "policy-shadow", "policy-shadow-end"}  # fmt: skip


def pages() -> set[str]:
    routes = (pattern for pattern in urlpatterns if isinstance(pattern, URLPattern))
    return {route.name for route in routes if route.name} - PARTS - ACTS


@pytest.mark.parametrize("page", sorted(pages()))
def test_every_page_is_photographed(page: str) -> None:
    assert page in {shot.route for shot in all_shots()}, f"add {page} to portal/ops/launch/pages.py"


def test_every_tab_of_a_job_is_photographed() -> None:
    assert {"overview", *JOB_TABS} == set(TABS)


def test_pictures_do_not_overwrite_each_other() -> None:
    names = [shot.name for shot in all_shots()]
    assert len(names) == len(set(names))
    assert {shot.route for shot in all_shots()} - {""} <= pages()
