"""Signing in, and looking at a page as people who see little, or use a small screen, would."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}
APPEARANCES = (("wide", "light"), ("narrow", "dark"))
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
CHECKS = {"runOnly": RULES, "resultTypes": ["violations"]}  # what is well need not be listed: half the time


def sign_in(page: Any, name: str = "ada") -> None:
    page.goto("/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("x")
    page.get_by_role("button", name="Sign in").click()


def look(page: Any, name: str) -> None:
    """Wide and light, then as narrow as a small telephone and dark, the page is without fault."""
    page.wait_for_load_state()
    before = page.viewport_size
    for size, scheme in APPEARANCES:
        page.set_viewport_size(SIZES[size])
        page.emulate_media(color_scheme=scheme)
        _inspect(page, f"{name}-{size}-{scheme}")
    page.set_viewport_size(before)


def _excess_px(page: Any) -> int:
    """How much wider the page is than its window, once its charts have followed the window."""
    for _ in range(20):
        wide = int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
        if wide <= 0:
            break
        page.wait_for_timeout(100)
    return wide


def _inspect(page: Any, name: str) -> None:
    """It fits its window and axe finds nothing; SCREENSHOTS names a folder for pictures."""
    from axe_playwright_python.sync_playwright import Axe

    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=str(Path(folder, f"{name}.png")), full_page=True)
    wide = _excess_px(page)
    assert wide <= 0, f"{name} is {wide} px too wide"
    found = Axe().run(page, options=CHECKS)
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
