"""Photograph every page of a demo portal.

    python -m portal.ops.launch.screenshots [--out DIR]

Makes a database of simulated data in a folder of its own, serves it on loopback, and takes each
page at two widths, light and dark. Says which pages complain in their console or are wider than
their window. Needs Chromium and the packages of requirements/dev.lock.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import django

from portal.ops.launch import processes
from portal.ops.launch.pages import Shot, all_shots
from portal.ops.launch.preflight import LaunchFailed, wait_until_served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"]
WIDTHS = {390: 844, 1280: 900}
SCHEMES = ("light", "dark")
TALLEST_PX = 2400  # longer pages are cut: the pictures are for looking, not for reading
# Charts are drawn once they are near what the window shows.
DRAWN = """() => [...document.querySelectorAll(".chart")].every((chart) => !chart.checkVisibility()
  || chart.getBoundingClientRect().top > innerHeight || chart.querySelector(".main-svg"))"""
OUT = processes.REPOSITORY / "var" / "screenshots"


def find_browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise LaunchFailed("There is no Chromium here: install the package chromium.")
    return found


@contextmanager
def demo_portal(data: Path, password: str) -> Iterator[str]:
    """Serve simulated data and yield the address of the web server.

    The data are made in `data` unless they are there already.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **os.environ,
        "DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "LOG_LEVEL": "ERROR",
        "RATE_LIMIT": "100000/min",
    }
    for name in ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "SECURE"):
        env.pop(name, None)
    fill(data, password, env)
    server = subprocess.Popen(processes.web("127.0.0.1", port).command, env=env, cwd=processes.REPOSITORY)
    try:
        wait_until_served(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=10)


def fill(data: Path, password: str, env: Mapping[str, str]) -> None:
    """Simulated data, unless an earlier run has made them."""
    manage = str(processes.REPOSITORY / "manage.py")
    new = not (data / "portal.sqlite3").exists()
    commands = [[manage, "migrate", "-v0"], [manage, "collectstatic", "--noinput", "-v0"]]
    commands += [[manage, "demo_data", "--password", password]] * new
    commands += [["-m", "portal.ops.launch.demo_simulation"]]
    for command in commands:
        subprocess.run([sys.executable, *command], env=env, cwd=processes.REPOSITORY, check=True)


def sign_in(page: Page, person: str, password: str) -> None:
    page.goto("/login/")
    page.get_by_label("Name").fill(person)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")


def visit(browser: Browser, url: str, login: tuple[str, str], shots: list[Shot], out: Path) -> list[str]:
    """Take all pictures that this person (name and password) sees.

    Returns their faults.
    """
    faults: list[str] = []
    for scheme in SCHEMES:
        context = browser.new_context(base_url=url, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        page.on("pageerror", partial(_complain, faults, page))
        if login[0]:
            sign_in(page, *login)
        for shot, width in product(shots, WIDTHS):
            faults += photograph(page, shot, width, out / f"{shot.name}-{width}-{scheme}.png")
        context.close()
    return faults


def _complain(faults: list[str], page: Page, error: object) -> None:
    faults.append(f"{urlsplit(page.url).path}: {error}")


def photograph(page: Page, shot: Shot, width: int, path: Path) -> list[str]:
    """One picture of the whole page; returns what is wrong with it."""
    page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    answer = page.goto(shot.path, wait_until="networkidle")
    if answer is None or answer.status != shot.status:
        return [f"{shot.name}: {shot.path} answered {answer and answer.status}, not {shot.status}"]
    if shot.before:
        shot.before(page)
    page.wait_for_timeout(300)
    tall = min(TALLEST_PX, int(page.evaluate("document.documentElement.scrollHeight")))
    page.set_viewport_size({"width": width, "height": max(WIDTHS[width], tall)})
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(200)
    page.screenshot(path=str(path))
    over = int(page.evaluate("document.documentElement.scrollWidth")) - width
    return [f"{shot.name}: {over} px wider than a window of {width} px"] if over > 0 else []


def take_all(playwright: Playwright, data: Path, out: Path, shots: list[Shot]) -> list[str]:
    """Take these pictures; returns what is wrong with the pages."""
    password = os.environ.get("DEMO_PASSWORD") or secrets.token_urlsafe(12)
    out.mkdir(parents=True, exist_ok=True)
    faults = []
    browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
    with demo_portal(data, password) as url:
        for person, seen in groupby(sorted(shots, key=lambda shot: shot.person), lambda shot: shot.person):
            faults += visit(browser, url, (person, password), list(seen), out)
    browser.close()
    return faults


def _shots(data: Path) -> tuple[Shot, ...]:
    """All pictures, by a Django whose data folder is the demo's own."""
    os.environ["DATA_DIR"] = str(data)
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    django.setup()
    return all_shots()


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.py screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the pictures (var/screenshots)")
    parser.add_argument("--only", default="", help="pages whose name contains this")
    parser.add_argument(
        "--data", type=Path, help="keep the demo portal here, and use it again (DEMO_PASSWORD)"
    )
    given = parser.parse_args()
    try:
        from playwright.sync_api import sync_playwright

        with tempfile.TemporaryDirectory(prefix="foretune-demo-") as folder, sync_playwright() as playwright:
            data = given.data or Path(folder)
            shots = [shot for shot in _shots(data) if given.only in shot.name]
            faults = take_all(playwright, data, given.out, shots)
    except (LaunchFailed, ImportError) as failed:
        print(f"{failed} (requirements/dev.lock lists what this needs)", file=sys.stderr)
        return 1
    print(f"{len(shots)} pages photographed in {given.out}", *sorted(set(faults)), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
