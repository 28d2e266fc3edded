"""Pictures that `run.py screenshots` takes.

They show every page, and the states of a page that look different.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

MODEL = "meta-llama/Llama-3.1-8B"


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: its name, who looks, where, and what to do before it is taken.

    route: name of the page it ends on, as portal/web/urls.py calls it.
    """

    name: str
    path: str
    route: str = ""
    person: str = "admin"
    before: Callable[[Page], None] | None = None
    status: int = 200


def follow(selector: str, query: str = "") -> Callable[[Page], None]:
    """Open the page behind the first such link, with `query` added to its address."""

    def go(page: Page) -> None:
        address = page.locator(selector).first.get_attribute("href")
        page.goto(f"{address}{query}", wait_until="networkidle")

    return go


def fill_in(page: Page) -> None:
    """The two required fields, so that the recommendation shows."""
    page.get_by_label("Base model").fill(MODEL)
    page.get_by_label("Training data").select_option(index=1)
    page.get_by_text("Peak memory per GPU").first.wait_for()


def make_token(page: Page) -> None:
    page.get_by_label("Name").fill("continuous integration")
    page.get_by_role("button", name="Create").click()
    page.wait_for_load_state("networkidle")


def serve(page: Page) -> None:
    """An account for programs, unless an earlier picture has made it."""
    if not page.get_by_role("link", name=PROGRAM).count():
        page.get_by_label("Name").fill(PROGRAM)
        page.get_by_role("button", name="Create").click()
    else:
        page.get_by_role("link", name=PROGRAM).click()
    page.wait_for_load_state("networkidle")


def add_node(page: Page) -> None:
    page.get_by_role("button", name="Add a node").click()
    page.locator("#join-command").wait_for()


def wrong_password(page: Page) -> None:
    page.get_by_label("Name").fill("user")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state("networkidle")


def read_script(page: Page) -> None:
    """A configuration with its command, so that what it states shows."""
    page.get_by_label("or a script or configuration as text").fill(SCRIPT)
    page.get_by_label("Command").fill("axolotl train script.yaml --lora_r 8")
    page.get_by_role("button", name="Read it").click()
    page.get_by_role("link", name="Use these values").wait_for()


def read_log(page: Page) -> None:
    """Lines of another trainer, so that what they tell shows."""
    page.get_by_label("or its lines as text").fill(LOG)
    page.get_by_role("button", name="Read it").click()
    page.get_by_role("heading", name="Keep as execution").wait_for()


def add_market(page: Page) -> None:
    """A market of the demo's own, unless an earlier picture has added it."""
    if not page.get_by_role("link", name=MARKET).count():
        page.get_by_label("Name").fill(MARKET)
        page.get_by_label("GPU model").fill("A100-SXM4-80GB")
        page.get_by_label("On-demand price of a GPU hour").fill("2.5")
        page.get_by_role("button", name="Add").click()
        page.wait_for_load_state("networkidle")
        page.goto(page.url.split("/markets/")[0] + "/markets/")
    page.get_by_role("link", name=MARKET).click()
    page.wait_for_load_state("networkidle")


MARKET = "zone-a"
PROGRAM = "ci-linguists"
LOG = "".join(f" {n}%|# | {n}/100 [00:{n:02}<01:00, 1.0it/s, loss={4 - n / 40}]\n" for n in range(9))
SCRIPT = f"base_model: {MODEL}\nadapter: lora\nlora_r: 16\nlearning_rate: 2e-4\nnum_epochs: 3\n"
JOB = "#rows td a"
JOB_TABS = ("log", "parameters", "attempts", "decisions", "market", "events", "change", "repeat")

_STATES = (
    Shot("sign-in", "/login/", "login", person=""),
    Shot("sign-in-wrong", "/login/", "login", "", wrong_password),
    Shot("home", "/", "home", "user"),
    Shot("home-admin", "/", "home"),
    Shot("password", "/password/", "password", "user"),
    Shot("jobs", "/jobs/", "jobs", "user"),
    Shot("jobs-none-match", "/jobs/?q=nothing-is-called-this", "jobs", "user"),
    Shot("new-job", "/jobs/new/", "job-new", "user", fill_in),
    Shot("new-job-empty", "/jobs/new/", "job-new", "user"),
    Shot("import", "/jobs/import/", "job-import", "user", read_script),
    Shot("log-elsewhere", "/logs/", "log-elsewhere", "user", read_log),
    Shot("job-running", "/jobs/?state=running", "job", "admin", follow(JOB)),
    Shot("job-queued", "/jobs/?state=queued", "job", "admin", follow(JOB)),
    Shot("job-failed", "/jobs/?state=failed", "job", "admin", follow(JOB)),
    Shot("job-succeeded", "/jobs/?state=succeeded", "job", "admin", follow(JOB)),
    *(
        Shot(f"job-{tab}", "/jobs/?state=succeeded", "job", "admin", follow(JOB, f"?tab={tab}"))
        for tab in JOB_TABS
    ),
    Shot("files", "/files/", "files", "user"),
    Shot("queue", "/queue/", "queue", "user"),
    Shot("simulation", "/simulations/", "simulation", "admin", follow("#rows th a")),
    Shot("nodes", "/nodes/", "nodes"),
    Shot("nodes-join", "/nodes/", "nodes", "admin", add_node),
    Shot("node", "/nodes/", "node", "admin", follow("#rows h2 a")),
    Shot("analytics", "/analytics/?range=all", "analytics"),
    Shot("analytics-nothing", "/analytics/?from=2001-01-01&to=2001-01-02", "analytics"),
    Shot("predictions", "/analytics/predictions/?range=all", "predictions"),
    Shot("spending", "/analytics/spending/?range=all", "spending"),
    Shot("user", "/users/", "user", "admin", follow("table td a")),
    Shot("team", "/teams/", "team", "admin", follow("table td a")),
    Shot("tokens", "/tokens/", "tokens", "user"),
    Shot("token-made", "/tokens/", "tokens", "user", make_token),
    Shot("device", "/device/", "device", "user"),
    Shot("service-account", "/service-accounts/", "service-account", "admin", serve),
    Shot("service-accounts", "/service-accounts/", "service-accounts"),
    Shot("api-docs", "/api/docs/"),
    Shot("all-tables", "/admin/"),
    Shot("limits", "/users/limits/", "limits"),
    Shot("windows", "/windows/", "windows"),
    Shot("market", "/markets/", "market", "admin", add_market),
    Shot("forbidden", "/users/", "", "user", status=403),
    Shot("not-found", "/jobs/ftjob-none/", "", status=404),
)


def all_shots() -> tuple[Shot, ...]:
    """Return all pictures to take.

    They are the states above, and one of each other page of the navigation. Django must be set up.
    """
    from portal.web.navigation import PAGES

    known = {shot.route for shot in _STATES}
    plain = [page for page in PAGES if page.name not in known]
    return (*_STATES, *(Shot(page.name, f"/{page.address}", page.name) for page in plain))
