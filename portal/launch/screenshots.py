"""Photograph every page of a demo portal: `python -m portal.launch.screenshots [--out DIR]`.

Makes a database of simulated data in a folder of its own, serves it on loopback, and takes each page at two
widths, light and dark. Needs Chromium and the packages of requirements/dev.lock.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from portal.launch import processes
from portal.launch.machine import LaunchFailed, wait_until_served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"]
WIDTHS = {390: 844, 1280: 900}
SCHEMES = ("light", "dark")
TALLEST_PX = 2400  # longer pages are cut: the pictures are for looking, not for reading
OUT = processes.REPOSITORY / "docs" / "screenshots"


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: its name, who looks, where, and what to do before it is taken."""

    name: str
    path: str
    person: str = "admin"
    before: Callable[[Page], None] | None = None


def fill_in(page: Page) -> None:
    """The two required fields, so that the recommendation shows."""
    page.get_by_label("Base model").fill("meta-llama/Llama-3.1-8B")
    page.get_by_label("Training data").select_option(index=1)
    page.get_by_text("Peak memory per GPU").first.wait_for()


def first_job(page: Page) -> None:
    page.locator("#rows td a").first.click()
    page.wait_for_load_state("networkidle")


SHOTS = (
    Shot("sign-in", "/login/", person=""),
    Shot("home", "/", "user"),
    Shot("jobs", "/jobs/", "user"),
    Shot("new-job", "/jobs/new/", "user", fill_in),
    Shot("job-running", "/jobs/?state=running", "admin", first_job),
    Shot("job-succeeded", "/jobs/?state=succeeded", "admin", first_job),
    Shot("queue", "/queue/", "user"),
    Shot("nodes", "/nodes/"),
    Shot("analytics", "/analytics/?range=all"),
    Shot("predictions", "/analytics/predictions/?range=all"),
    Shot("users", "/users/"),
    Shot("teams", "/teams/"),
    Shot("tokens", "/tokens/", "user"),
    Shot("audit", "/audit/"),
    Shot("not-found", "/jobs/ftjob-none/"),
)


def find_browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise LaunchFailed("There is no Chromium here: install the package chromium.")
    return found


@contextmanager
def demo_portal(data: Path, password: str) -> Iterator[str]:
    """The address of a web server on simulated data, made in `data` unless they are there already."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **os.environ,
        "DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "LOG_LEVEL": "ERROR",
    }
    for name in ("DATABASE_URL", "REDIS_URL", "SECURE"):
        env.pop(name, None)
    (data / "static").mkdir(parents=True, exist_ok=True)  # WhiteNoise warns where there is none
    manage = (sys.executable, str(processes.REPOSITORY / "manage.py"))
    if not (data / "portal.sqlite3").exists():
        subprocess.run([*manage, "migrate", "-v0"], env=env, check=True)
        subprocess.run([*manage, "demo_data", "--password", password], env=env, check=True)
    command = processes.web("127.0.0.1", port).command
    server = subprocess.Popen(command, env=env, cwd=processes.REPOSITORY)
    try:
        wait_until_served(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=10)


def photograph(browser: Browser, url: str, shot: Shot, password: str, out: Path) -> None:
    """The page in both widths and both schemes."""
    for scheme in SCHEMES:
        context = browser.new_context(base_url=url, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        if shot.person:
            sign_in(page, shot.person, password)
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.goto(shot.path, wait_until="networkidle")
            if shot.before:
                shot.before(page)
            page.wait_for_timeout(300)
            tall = min(TALLEST_PX, int(page.evaluate("document.documentElement.scrollHeight")))
            path = out / f"{shot.name}-{width}-{scheme}.png"
            page.set_viewport_size({"width": width, "height": max(height, tall)})
            page.wait_for_timeout(200)
            page.screenshot(path=str(path))
        context.close()


def sign_in(page: Page, person: str, password: str) -> None:
    page.goto("/login/")
    page.get_by_label("Name").fill(person)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()


def take_all(data: Path, out: Path, wanted: str) -> int:
    """All pictures whose name contains `wanted`; returns how many pages."""
    from playwright.sync_api import sync_playwright

    browser_path, password = find_browser(), os.environ.get("DEMO_PASSWORD") or secrets.token_urlsafe(12)
    out.mkdir(parents=True, exist_ok=True)
    shots = [shot for shot in SHOTS if wanted in shot.name]
    with demo_portal(data, password) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=ARGUMENTS)
        for shot in shots:
            photograph(browser, url, shot, password, out)
        browser.close()
    return len(shots)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portal.launch.screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the pictures")
    parser.add_argument("--only", default="", help="pages whose name contains this")
    parser.add_argument(
        "--data", type=Path, help="keep the demo portal here, and use it again (DEMO_PASSWORD)"
    )
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="foretune-demo-") as folder:
            count = take_all(given.data or Path(folder), given.out, given.only)
    except (LaunchFailed, ImportError) as failed:
        print(f"{failed} (requirements/dev.lock lists what this needs)", file=sys.stderr)
        return 1
    print(f"{count} pages photographed in {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
