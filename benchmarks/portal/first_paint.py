"""When a page can be used: `python -m benchmarks.portal.first_paint [--slower 4] [--loads 5]`.

Starts a portal's web server and loads pages in Chromium, each time with an empty cache, with the processor as
it is and slowed down. Printed are medians of

- first paint: something of the page is seen;
- usable: the page is complete and its own scripts have run, so that fields take input and answer it;
- longest task: for so long at most the page did not react until two seconds after that.

Aim: *New job* usable in less than a second on a laptop, which is the processor slowed down fourfold. The load
of the machine is printed: what runs beside it counts, too.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

# isort: off
import tests.harness.environment  # noqa: F401 -- before Django reads its settings

# isort: on
import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
django.setup()

from portal.ops.launch import preflight  # noqa: E402 -- needs Django
from tests.harness.stack import Stack  # noqa: E402
from tests.harness.tools import chromium  # noqa: E402

PAGES = ("/jobs/", "/jobs/new/", "/analytics/", "/nodes/")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
WATCH = """window.longest = 0;
new PerformanceObserver(list => list.getEntries().forEach(
  task => { window.longest = Math.max(window.longest, task.duration) }
)).observe({type: "longtask", buffered: true});"""
READ = """() => {
  const page = performance.getEntriesByType("navigation")[0];
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [paint ? paint.startTime : NaN, page.domContentLoadedEventEnd, window.longest];
}"""
AFTER_MS = 2000


def load(browser: Any, stack: Stack, cookies: list[Any], path: str, slower: int) -> list[float]:
    """Load a page in a fresh browser context: first paint, usable, longest task, in ms."""
    context = browser.new_context(base_url=stack.url, viewport={"width": 1280, "height": 900})
    context.add_cookies(cookies)
    page = context.new_page()
    page.add_init_script(WATCH)
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.goto(path, wait_until="load")
    page.wait_for_timeout(AFTER_MS)
    found = [float(value) for value in page.evaluate(READ)]
    context.close()
    return found


def sign_in(browser: Any, stack: Stack) -> list[Any]:
    """Return the cookies of `user`."""
    context = browser.new_context(base_url=stack.url)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Name").fill("user")
    page.get_by_label("Password").fill(stack.passwords["user"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    cookies: list[Any] = context.cookies()
    context.close()
    return cookies


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown, a line for each page and speed."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(prog="python -m benchmarks.portal.first_paint", description=__doc__)
    parser.add_argument("--slower", type=int, default=4)
    parser.add_argument("--loads", type=int, default=5)
    given = parser.parse_args(arguments)
    if chromium() is None:
        print("No Chromium is on this machine.", file=sys.stderr)
        return 1
    stack = Stack()
    try:
        stack.start_web_alone()
        preflight.wait_until_served(stack.url)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            cookies = sign_in(browser, stack)
            print("| page | processor | first paint, ms | usable, ms | longest task, ms |\n|", "--- | " * 5)
            for path in PAGES:
                load(browser, stack, cookies, path, 1)  # the server's own first time
                for slower in (1, given.slower):
                    found = [load(browser, stack, cookies, path, slower) for _ in range(given.loads)]
                    cells = " | ".join(
                        f"{statistics.median(column):.0f}" for column in zip(*found, strict=True)
                    )
                    print(f"| {path} | 1/{slower} | {cells} |", flush=True)
            browser.close()
    finally:
        stack.stop()
    print(f"load of the machine meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
