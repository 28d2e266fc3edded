"""The pages of docs agree with each other and with the code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from portal.events.types import EventType
from scheduler.states import NODE_TRANSITIONS, REMOVABLE, Block, WaitState
from tests.generated_docs import GENERATED
from trainer.protocol import Outcome

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = [*sorted(ROOT.glob("*.md")), *PAGES[1:], *sorted((ROOT / "benchmarks").rglob("*.md"))]
LIFECYCLE = (ROOT / "docs" / "node-lifecycle.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
NODE_EVENTS = [type.removeprefix("node.") for type in EventType if type.about == "node"]
WIDEST = 110
PACKAGES = (
    "portal", "scheduler", "knowledge", "trainer", "client", "tests", "benchmarks", "templates", "docs",
    "requirements",
)  # fmt: skip
FOLDERS = {*PACKAGES, "core", "train", "agent", "loop", "services", "selectors", "simulator", "predict"}


@cache
def tree() -> tuple[str, ...]:
    """All modules, and folders with a slash at the end."""
    paths = [path for name in PACKAGES for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    kept = [path for path in paths if path.suffix == ".py" or path.is_dir()]
    return tuple(f"/{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}" for path in kept)


def headings(page: Path) -> set[str]:
    """As the fragments that lead to them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in set(re.findall(r"\]\(([^)\s]+)\)", page.read_text())):
        name, _, fragment = link.partition("#")
        place = page.parent / name if name else page
        if "://" not in link and (not place.exists() or (fragment and fragment not in headings(place))):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    """A page may leave out the folders that its subject makes plain; other projects' files are not ours."""
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page.read_text()))
    ours = {name for name in named if name.split("/")[0] in FOLDERS}
    assert {name for name in ours if not any(path.endswith(f"/{name}") for path in tree())} == set()


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_wrapped(page: Path) -> None:
    """Rows of tables and addresses cannot be; cells hold no paragraphs."""
    lines = [line for line in page.read_text().splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > WIDEST and "://" not in line] == []


def test_the_lifecycle_of_nodes_has_every_state_and_way_out() -> None:
    ways = set(re.findall(r"^    (\S+) --> (\S+) :", LIFECYCLE, re.MULTILINE))
    inside = {way for way in ways if "[*]" not in way}
    assert inside == {
        (str(state), str(to)) for state, following in NODE_TRANSITIONS.items() for to in following
    }
    assert {state for state, to in ways if to == "[*]"} == {str(state) for state in REMOVABLE}
    assert ("[*]", "lost") in ways, "a node that has enrolled and said nothing gets no work"


@pytest.mark.parametrize(("heading", "named"), [("| event |", NODE_EVENTS), ("| block |", Block)])
def test_the_lifecycle_of_nodes_has_every_event_and_every_block(heading: str, named: Iterable[str]) -> None:
    table = LIFECYCLE.partition(heading)[2].partition("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    assert set(re.findall(r"`([a-z_-]+)`", " ".join(first))) == set(named)


def test_the_architecture_lists_every_wait_state() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition("| why a job waits |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z-]+)`", table)) == {str(state) for state in WaitState}


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.stem)
def test_tables_of_docs_say_what_the_code_says(page: Path) -> None:
    text = page.read_text()
    assert text == GENERATED[page](text), "write it anew: .venv/bin/python -m tests.generated_docs"


def test_the_glossary_says_every_word_once() -> None:
    rows = [line.split("|")[1].strip() for line in GLOSSARY.splitlines() if line.startswith("| ")]
    words = [word for row in rows for word in row.split(", ") if row not in ("word", "---")]
    assert len(words) == len(set(words))
    assert {"job", "attempt", "claim", "fence", "lease", "gang", "option", "promise", "residual"} <= set(
        words
    )
    outcomes = next(line for line in GLOSSARY.splitlines() if line.startswith("| outcome |"))
    assert set(re.findall(r"`(\w+)`", outcomes)) == {str(outcome) for outcome in Outcome}
