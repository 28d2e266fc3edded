"""Every figure, in every state and through every interface, is what docs/figures.md says."""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient
from rich.console import Console

from portal.ops.launch import terminal
from portal.web.templatetags.portal_format import FIGURES, duration, figure, loss, number
from scheduler.states import TRANSITIONS
from tests.portal.figures import pages
from tests.portal.figures.by_hand import FINAL, ByHand, Lines
from tests.portal.figures.stories import STORIES
from tests.portal.figures.story import Story

about = pytest.approx
pytestmark = pytest.mark.django_db
NOT_PRICED_LATER = False  # in a story GPUs have a price from the beginning, or none ever
MIXED = {  # of what other stories have, too
    *("trains without a step", "stopping for drain", "pausing, then cancelled", "paused before it started"),
    *("resumed and starting", "resumed, trains without a step", "succeeded after a pause"),
    *("succeeded elsewhere", "killed, then cancelled", "cancelled in the second start"),
}
FREE = ("running", "succeeded")  # without prices, the others differ from these as with prices


@pytest.mark.parametrize(
    ("name", "priced"),
    [
        *(pytest.param(name, True, marks=[pytest.mark.slow] * (name in MIXED)) for name in STORIES),
        *(pytest.param(name, False, marks=[pytest.mark.slow] * (name not in FREE)) for name in STORIES),
    ],
)
def test_every_interface_tells_the_same(
    tell: Callable[..., Story], name: str, priced: bool, api: APIClient, browser: Client, tmp_path: Path
) -> None:
    story = tell(name, priced=priced)
    reported = ByHand(story)
    rest = api.get(f"/api/jobs/{story.job.pk}/").json()
    check_rest(rest, reported)
    check_list(api.get("/api/jobs/").json()["data"][0], rest)
    check_terminal(rest, reported)
    check_page(browser, story, reported)
    check_fragments(browser, story, reported)
    check_lists(browser, story, reported)
    check_trace(tmp_path / "past.csv", story, reported)


@pytest.mark.one_database
def test_the_stories_are_in_every_state_of_the_table(tell: Callable[..., Story]) -> None:
    """One story for each state is enough: all stories are told above."""
    told_by = {"stopping": "pausing", "cancelled": "cancelled in the queue"}
    for state in TRANSITIONS:
        assert tell(told_by.get(state, state), priced=False).job.state == state


def check_rest(rest: dict[str, Any], message: ByHand) -> None:
    assert rest["state"] == message.state
    assert pages.datetime.fromisoformat(rest["state_since"]) == message.since
    assert rest["stage"] == ("starting" if message.internal == "starting" else "")
    assert rest["progress"] == {
        "step": message.step, "total_steps": message.total_steps, "loss": message.loss,
        "tokens_per_second": message.tokens_per_second, "eta_s": about(message.time_left_s),
        "end": rest["progress"]["end"], "silent_since": None,
    }  # fmt: skip
    ends = [pages.datetime.fromisoformat(at) for at in (rest["progress"]["end"] or {}).values()]
    assert [end.timestamp() for end in ends] == about([end.timestamp() for end in message.ends])
    assert rest["warnings"] == []
    assert rest["figures"] == {
        # SQLite counts in days from 4714 BC on, in steps of 40 µs.
        "waiting_s": about(message.waiting_s, abs=1e-4), "startup_s": about(message.startup_s),
        "duration_s": about(message.duration_s), "peak_memory_bytes": message.peak_memory_bytes,
    }  # fmt: skip
    assert rest["first_loss"] == (message.losses[0] if message.losses else None)
    assert (rest["ended_at"] is None) == (message.ended_at is None)
    cost = {"amount": about(message.cost), "estimated": False} if message.cost else None
    assert rest["cost"] == cost
    for name, by_hand in both_comparisons(message).items():
        lines = {line["name"]: tuple(line.values())[1:] for line in rest[name]}
        assert lines == {
            name: (*line[:3], None if line[3] is None else about(line[3]), line[4], NOT_PRICED_LATER)
            for name, line in by_hand.items()
        }


def both_comparisons(facts: ByHand) -> dict[str, Lines]:
    """As they stand on the page: that with the promise at submission comes first, if there is one."""
    return {"submission_comparison": facts.submission_comparison, "comparison": facts.comparison}


def check_list(brief: dict[str, Any], whole: dict[str, Any]) -> None:
    assert {name: whole[name] for name in brief} == brief


def shown(thing: Any) -> str:
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(thing)
    return captured.get()


def check_terminal(rest: dict[str, Any], facts: ByHand) -> None:
    line = shown(terminal.progress_line(rest))
    assert line.startswith(f"[{facts.state}]")
    assert (" starting" in line) == (facts.internal == "starting")
    if facts.state != "queued" and facts.internal != "starting":
        assert f"step {facts.step}/{facts.total_steps or '?'}" in line
        assert ("loss" in line) == (facts.loss is not None)
        assert facts.loss is None or f"loss {facts.loss:.3f}" in line
        rate, left = facts.tokens_per_second, facts.time_left_s
        assert ("tokens/s" in line) == (rate is not None)
        assert rate is None or f"{rate:,.0f} tokens/s" in line
        assert (" s left" in line) == (left is not None)
        assert left is None or f"{left:.0f} s left" in line
    table = shown(terminal.comparison(rest)).splitlines()
    for title, name in (("duration", "duration_s"), ("throughput", "tokens_per_second"), ("cost", "cost")):
        row = next((row.split() for row in table if row.split()[:1] == [title]), [])
        if line_by_hand := facts.comparison.get(name):
            *_, actual, inside = line_by_hand
            assert (row[-1] in ("yes", "no")) == (inside is not None)
            assert inside is None or row[-1] == ("yes" if inside else "no")
            text = number(actual) if name == "cost" else f"{actual or 0:,.0f}"
            assert (text if actual is not None else "unknown") in row
    if facts.losses:
        assert terminal.loss(rest) == f"{facts.losses[0]:.3f} -> {facts.losses[-1]:.3f}"


def check_page(browser: Client, story: Story, message: ByHand) -> None:
    page = browser.get(f"/jobs/{story.job.pk}/").content.decode()
    live = page.partition('id="live"')[2]
    assert pages.state(live) == message.state
    assert pages.moments(live)[0] == message.since
    assert ("starting: process" in live) == (message.internal == "starting")
    facts = pages.facts(live)
    of = f" of {message.total_steps}" if message.total_steps else ""
    assert facts["Step"] == f"{message.step}{of}"
    assert facts["Loss"] == loss(message.loss)
    rate = message.tokens_per_second
    assert facts["Mean speed" if message.internal in FINAL else "Speed"] == (
        f"{number(rate)} tokens/s" if rate else "–"
    )
    if message.internal in FINAL:
        assert message.ended_at in pages.moments(live.partition("<dt>Ended")[2])
        assert "Time left" not in facts
    else:
        left = message.time_left
        bounds = f" {duration(left.low)} to {duration(left.high)}" if left else ""
        assert facts["Time left"] == duration(message.time_left_s) + bounds
        assert ("End" in facts) == (left is not None)
    assert facts.get("Cost", "–") == cost_shown(message)
    on_page = [lines for lines in both_comparisons(message).values() if lines]
    for rows, lines in zip(pages.tables(page, "Figure Promised"), on_page, strict=True):
        check_comparison({row[0]: row for row in rows}, lines)
    check_stretches(page, message)


def cost_shown(message: ByHand) -> str:
    """What it cost so far and, where its end is known, in all; before its first GPU what was promised."""
    if message.internal in FINAL or message.cost is None:
        promised = None if message.tries or message.internal in FINAL else message.promised_cost
        return f"about {number(promised)}" if promised else number(message.cost)
    in_all = f", about {number(message.expected_cost)} in all" if message.expected_cost is not None else ""
    return f"{number(message.cost)} so far{in_all}"


def check_comparison(rows: dict[str, list[str]], lines: Lines) -> None:
    assert list(rows) == [FIGURES[name][0] for name in lines]
    for name, (value, low, high, actual, inside) in lines.items():
        _, promised, *_, said = rows[FIGURES[name][0]]
        verdict = {True: " inside", False: " outside", None: ""}[inside]
        assert said == f"{figure(actual, name)}{verdict}"
        interval = f" {figure(low, name)} to {figure(high, name)}" if low is not None else ""
        assert promised.startswith(f"{figure(value, name)}{interval}")


def check_stretches(page: str, message: ByHand) -> None:
    part = page.partition('<ol class="stretches">')[2].partition("</ol>")[0]
    texts = [pages.plain(text) for text in part.split("</li>") if text.strip()]
    waits = [text.removeprefix("queued ") for text in texts if text.startswith("queued ")]
    assert ("since " in texts[-1]) == (message.internal not in FINAL and message.state != "cancelled")
    if len(waits) == 1 and message.state != "queued":
        assert waits == [duration(message.waiting_s)]
    assert texts[-1].split()[0] == message.state


def check_fragments(browser: Client, story: Story, facts: ByHand) -> None:
    """Parts that are fetched anew say what the page said."""
    path = f"/jobs/{story.job.pk}/"
    page = browser.get(path).content.decode()
    live = browser.get(f"{path}live/").content.decode()
    assert pages.facts(live) == pages.facts(page)
    assert (pages.state(live), pages.moments(live)[0]) == (facts.state, facts.since)
    overview = browser.get(f"{path}tabs/overview/").content.decode()
    assert pages.tables(overview, "Figure Promised") == pages.tables(page, "Figure Promised")
    caption = browser.get(f"{path}charts/loss/").json()["summary"]
    if len(facts.losses) == 1:
        assert f"was {loss(facts.loss)} at step" in caption
    elif facts.losses:
        assert f"went from {loss(facts.losses[0])} at" in caption
        assert f"to {loss(facts.loss)} at step" in caption
        assert f"lowest was {loss(min(facts.losses))}." in caption


def check_lists(browser: Client, story: Story, message: ByHand) -> None:
    left = duration(message.time_left_s) if message.time_left_s is not None else ""
    for path in ("/jobs/", "/"):
        page = browser.get(path).content.decode()
        if path == "/" and message.internal in FINAL:
            continue  # the start page has what goes on
        row = pages.table(page, "Job Model")[0]
        assert row[2] == message.state
        assert row[4] == left
        assert row[5] == cost_shown(message)
        assert f'aria-valuenow="{message.percent}"' in page or message.percent is None
        assert ("Next to finish" in page) == (path == "/" and message.time_left_s is not None)
    queue = browser.get("/queue/").content.decode()
    if message.internal == "queued":
        assert message.since in pages.moments(queue.partition("<tbody>")[2].partition("</tbody>")[0])


def check_trace(path: Path, story: Story, facts: ByHand) -> None:
    """The export of ended jobs that trained."""
    call_command("export_trace", str(path), stdout=StringIO())
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    trained = [one for one in facts.tries if one.trained_at and one.end]
    if facts.internal not in FINAL or not trained:
        assert rows == []
        return
    gpu_s = sum((one.end - one.trained_at).total_seconds() * len(one.gpus) for one in trained)  # type: ignore[operator]
    assert float(rows[0]["duration_s"]) == about(gpu_s / len(trained[-1].gpus))
    assert (rows[0]["status"], float(rows[0]["submit_s"])) == (facts.state, 0.0)
