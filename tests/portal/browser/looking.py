"""Signing in, and looking at a page under difficult conditions.

They stand for people with poor sight or a small screen.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.harness import world

SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}
APPEARANCES = (("wide", "light"), ("narrow", "dark"))
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
CHECKS = {"runOnly": RULES, "resultTypes": ["violations"]}  # what is well need not be listed: half the time


def sign_in(page: Any, name: str = "ada") -> None:
    page.goto("/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("x")
    page.get_by_role("button", name="Sign in").click()


def look(page: Any, name: str, appearances: Sequence[tuple[str, str]] = APPEARANCES) -> None:
    """Check the page wide and light, then narrow and dark.

    The narrow window is that of a small telephone; the page must be without fault in both.
    """
    from playwright.sync_api import expect

    page.wait_for_load_state()
    before = page.viewport_size
    for size, scheme in appearances:
        page.set_viewport_size(SIZES[size])
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # colours change at once
        expect(page.locator(".htmx-request")).to_have_count(0)  # what loads is faded
        _inspect(page, f"{name}-{size}-{scheme}")
    page.set_viewport_size(before)


def _excess_px(page: Any) -> int:
    """Return the pixels by which the page is wider than its window.

    The charts are given time to follow the window.
    """
    for _ in range(20):
        wide = int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
        if wide <= 0:
            break
        page.wait_for_timeout(100)
    return wide


def _inspect(page: Any, name: str) -> None:
    """Check that the page fits its window and that axe finds nothing.

    SCREENSHOTS names a folder for pictures.
    """
    from axe_playwright_python.base import AXE_SCRIPT
    from axe_playwright_python.sync_playwright import Axe

    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=str(Path(folder, f"{name}.png")), full_page=True)
    wide = _excess_px(page)
    assert wide <= 0, f"{name} is {wide} px too wide"
    script = "0" if page.evaluate("'axe' in window") else AXE_SCRIPT  # half a megabyte to compile
    found = Axe(script).run(page, options=CHECKS)
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"


def begin_job(page: Any) -> Any:
    """The form with its two required values; returns the panel of the recommendation."""
    from playwright.sync_api import expect

    file = world.data_file(world.user("ada"), rows=200)
    sign_in(page)
    page.goto("/jobs/new/")
    page.get_by_label("Base model").fill("builtin/tiny-llama")
    page.get_by_label("Training data").select_option(file.pk)
    recommendation = page.locator("#recommendation")
    expect(recommendation.get_by_role("heading", name="Parameters and reasons")).to_be_visible()
    return recommendation


def top(of: Any) -> float:
    return float(of.bounding_box()["y"])


def tab_to(page: Any, wanted: str) -> None:
    """Press Tab until the element with this id or text has the focus.

    The focus must be visible there.
    """
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "({id: document.activeElement.id, text: document.activeElement.textContent.trim(),"
            " outline: getComputedStyle(document.activeElement).outlineStyle,"
            " shadow: getComputedStyle(document.activeElement).boxShadow})"
        )
        if wanted in (focused["id"], focused["text"]):
            assert focused["outline"] != "none" or focused["shadow"] != "none", f"{wanted}: focus is not seen"
            return
    raise AssertionError(f"the keyboard does not reach {wanted}")
