"""Signing in, and looking at a page as people who see little, or use a small screen, would."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def sign_in(page: Any, name: str = "ada") -> None:
    page.goto("/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("x")
    page.get_by_role("button", name="Sign in").click()


def look(page: Any, name: str) -> None:
    """The page fits its window and has no accessibility fault; SCREENSHOTS names a folder for pictures."""
    from axe_playwright_python.sync_playwright import Axe

    if folder := os.environ.get("SCREENSHOTS"):
        path = Path(folder, f"{name}-{page.viewport_size['width']}.png")
        page.screenshot(path=str(path), full_page=True)
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"{name} is {wide} px too wide"
    found = Axe().run(page, options={"runOnly": RULES})
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
