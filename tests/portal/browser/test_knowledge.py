"""An administrator teaches the portal.

The means are a GPU from a short form, a calibration, and a file of past executions.
"""

from __future__ import annotations

from typing import Any

import pytest

from portal.clock import database_now
from scheduler.models import Calibration
from scheduler.services.calibration.advance import advance_all
from tests.harness import world
from tests.portal.browser.looking import look, sign_in
from tests.portal.browser.test_people_and_nodes import menu
from tests.portal.features.test_history import BAD
from tests.scheduler.nodes.calibrating import Worker


@pytest.mark.slow
def test_a_node_with_an_unknown_gpu_is_described_and_calibrated(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    node = world.fake_node(name="strange", model="Strange-9000", memory_bytes=64 << 30)
    sign_in(page)
    page.get_by_role("link", name="Nodes").click()
    look(page, "nodes-unknown-gpu")
    page.get_by_role("link", name="Add it").click()
    expect(page.locator("#gpu_name")).to_have_value("Strange-9000")
    for label, value in (("Memory", "64"), ("Peak", "300"), ("Memory bandwidth", "-1")):
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Add the GPU").click()
    expect(page.get_by_text("must be above 0 and at most 1,000,000")).to_be_visible()
    look(page, "catalogue-refused")
    page.get_by_label("Memory bandwidth").fill("2000")
    page.get_by_role("button", name="Add the GPU").click()
    expect(page.get_by_text("Strange-9000 is in the catalogue")).to_be_visible()
    look(page, "catalogue")
    dialogs: list[str] = []
    page.once("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.accept()))
    page.get_by_role("button", name="Delete Strange-9000").click()
    expect(page.get_by_text("The node strange still offers Strange-9000")).to_be_visible()
    assert dialogs == ["Delete Strange-9000 from the catalogue?"]
    page.goto(f"/nodes/{node.node_id}/")
    page.get_by_label("Time limit in minutes").fill("30")
    page.get_by_label("Model").fill("random/smollm2-135m")
    page.get_by_role("button", name="Calibrate").click()
    expect(page.get_by_text("0 of 60 runs have ended")).to_be_visible()
    look(page, "node-calibrating")
    made = Calibration.objects.get()
    Calibration.objects.update(plan=made.plan[:6])
    train = Worker(node)
    while Calibration.objects.filter(ended_at__isnull=True).exists():
        advance_all(now=database_now)
        train()
    expect(page.get_by_text("6 of 6 planned runs started")).to_be_visible()
    page.get_by_text("Runs of the latest calibration").click()
    look(page, "node-calibrated")


def test_a_file_with_a_wrong_cell_is_told_line_by_line(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    sign_in(page)
    menu(page, "Past executions")
    look(page, "history")
    file = {"name": "ours.csv", "mimeType": "text/csv", "buffer": BAD.encode()}
    page.get_by_label("CSV file").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("Nothing was imported.")).to_be_visible()
    look(page, "history-refused")
