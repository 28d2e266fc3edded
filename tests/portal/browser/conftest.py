"""A real browser before a real server.

Pages that complain, ask other hosts or leave their frame fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.harness.tools import chromium
from tests.portal.browser.looking import SIZES

# One renderer for each window: Chromium would start three, most of them to spare.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update",
             "--renderer-process-limit=1",
             # Its address bar, which nobody sees, would load two pages for each window. The list takes the
             # place of Playwright's, of which it has what is about networks and painting.
             "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,AimEnabled,HttpsUpgrades,MediaRouter,"
             "NetworkTimeServiceQuerying,OptimizationHints,PaintHolding,PreconnectToSearch"]  # fmt: skip

PATIENCE_MS = 60_000  # shared machines are slow at times; a page that is right is right at once


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "portal/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.django_db(transaction=True))
            if chromium() is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))


@pytest.fixture(scope="session")
def chromium_browser() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    # Playwright's loop runs in this thread, where Django would refuse to touch the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


class Watch:
    """Faults of a page: it complains in its console, fails, or asks another host."""

    def __init__(self, page: Any) -> None:
        self.complaints: list[str] = []
        self.hosts: set[str | None] = set()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname))

    def _console(self, message: Any) -> None:
        # Chromium notes a form that was refused as an error of its own; the page is as it should be.
        if message.type not in ("error", "warning") or "400 (Bad Request)" in message.text:
            return
        # So is it where a newer question replaced one on its way: htmx tells of that in two lines.
        if message.text.startswith("htmx:sendAbort"):
            self.complaints.remove(message.text.replace("sendAbort", "afterRequest"))
        else:
            self.complaints.append(message.text)


@pytest.fixture
def opened(chromium_browser: Any, live_server: Any) -> Iterator[Any]:
    """A function that opens a page of a fresh person's browser, `wide` or `narrow`.

    `quiet`: whatever it complains of, or asks other hosts for, is a failure.
    """
    watches, contexts = [], []

    def open_page(size: str = "wide", *, quiet: bool = True) -> Any:
        # Without motion, so that no colour is caught on its way from one theme to the other.
        context = chromium_browser.new_context(
            base_url=live_server.url, viewport=SIZES[size], reduced_motion="reduce", accept_downloads=True
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        contexts.append(context)
        if quiet:
            watches.append(Watch(page))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for watch in watches for text in watch.complaints] == []
    assert {host for watch in watches for host in watch.hosts if host} <= {"localhost"}


@pytest.fixture
def page(opened: Any) -> Any:
    """A wide window; `look` sees to the narrow and the dark one."""
    return opened()


@pytest.fixture(params=SIZES)
def any_page(request: pytest.FixtureRequest, opened: Any) -> Any:
    """For what must be done in a wide window and on a small telephone."""
    return opened(request.param)
