"""All tests, on both kinds of database and in both environments.

`python3 run.py test [--quick] [--slow] [--free] [pytest arguments]`

`--quick` runs all tests that need no further process, on SQLite and in one collection. All of them run that
collection in parts, and the second database, the live stack, the browser and the training environment
beside it. `--slow` runs, instead of the ordinary tests, those that are run on demand. `--free` draws random
cases anew. Paths among the arguments replace the stages' own; other arguments go to every stage. One stage
is shown live, all others as they end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tests.harness.databases import FOLDERS
from tests.harness.servers import NotInstalled, Postgres, postgres_binaries
from tests.harness.tools import provide

REPOSITORY = Path(__file__).resolve().parent.parent
TRAINING_PYTHON = REPOSITORY / ".venv-train" / "bin" / "python"
COUNTED = ("tests", "failures", "errors", "skipped")
NOTHING_SELECTED = 5
LANES = 6  # for two cores: most wait half of their time, for processes, a browser or PostgreSQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One run of pytest."""

    title: str
    paths: tuple[str, ...]
    options: tuple[str, ...]
    python: Path = Path(sys.executable)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of a stage and whether it was green."""

    counts: Counter[str]
    green: bool


def all_but(*folders: str) -> tuple[str, ...]:
    """All other folders and files of tests."""
    tests = (REPOSITORY / "tests").iterdir()
    found = [path for path in tests if path.name.startswith("test_") or (path / "__init__.py").exists()]
    return tuple(sorted({path.relative_to(REPOSITORY).as_posix() for path in found} - {*folders}))


QUICK, ON_DEMAND, FREE = "--quick", "--slow", "--free"
SLOW = "slow"
SLOW_ON_SQLITE = "(slow or postgresql)" if postgres_binaries() else SLOW
IN_PROCESS = "not torch and not stack and not browser"
# It takes seconds to collect; without PostgreSQL it runs on SQLite.
IGNORED = ("--ignore=tests/portal/api/test_generated_requests.py",) if postgres_binaries() else ()
ALL_ON_SQLITE = Stage(
    title="in process", paths=("tests",), options=("-m", f"{IN_PROCESS} and not {SLOW}", *IGNORED)
)
PORTAL, SCHEDULER = "tests/portal", "tests/scheduler"
ON_SQLITE = ("-m", f"{IN_PROCESS} and not {SLOW_ON_SQLITE}", *IGNORED)
# One after the other they would take longer than all that runs beside them.
SQLITE = (
    Stage(title="in process, portal", paths=(PORTAL,), options=ON_SQLITE),
    Stage(title="in process, scheduler", paths=(SCHEDULER,), options=ON_SQLITE),
    Stage(title="in process, all others", paths=all_but(PORTAL, SCHEDULER), options=ON_SQLITE),
)
BROWSER = Stage(title="browser", paths=("tests/portal/browser",), options=("-m", f"browser and not {SLOW}"))
TORCH = Stage(
    title="training environment",
    paths=("tests/trainer",),
    options=("-m", f"torch and not {SLOW}", "-c", "tests/trainer/pytest.ini"),
    python=TRAINING_PYTHON,
)
STACK = Stage(title="live stack", paths=("tests/stack",), options=("-m", f"stack and not {SLOW}"))


# Most tests of the database, each stage on a server of its own. Redis has its part in the live stack.
POSTGRESQL = tuple(
    Stage(
        title=f"in process, PostgreSQL, {', '.join(paths)}",
        paths=paths,
        options=("-m", f"{IN_PROCESS} and not {SLOW} and (postgresql or two_databases)"),
    )
    for paths in ((SCHEDULER,), tuple(folder for folder in FOLDERS if folder != SCHEDULER))
)


def main(arguments: Sequence[str]) -> int:
    began = time.monotonic()
    if ON_DEMAND in arguments:
        os.environ["ON_DEMAND"] = "1"  # for what must be known before tests are collected
    if FREE in arguments:
        os.environ["RANDOM_CASES"] = "free"
    if QUICK in arguments:
        return told([run(ALL_ON_SQLITE, arguments, live=True)], began)
    provide()
    stages = [
        *(partial(on_postgres, stage, arguments) for stage in POSTGRESQL),
        partial(run, SQLITE[0], arguments, live=True),
        *(partial(run, stage, arguments) for stage in (STACK, BROWSER, *SQLITE[1:], TORCH)),
    ]
    lanes = ThreadPoolExecutor(LANES)
    try:
        outcomes = [begun.result() for begun in [lanes.submit(stage) for stage in stages]]
    finally:
        lanes.shutdown(cancel_futures=True)  # Ctrl-C ends what runs, and begins nothing more
    return told(outcomes, began)


def told(outcomes: Sequence[Outcome], began: float) -> int:
    """Print the counts of all lanes; return the exit code."""
    total = sum((outcome.counts for outcome in outcomes), Counter())
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    print(f"{passed} passed, {failed} failed, {total['skipped']} skipped in {time.monotonic() - began:.0f} s")
    return 0 if all(outcome.green for outcome in outcomes) else 1


def on_postgres(stage: Stage, arguments: Sequence[str]) -> Outcome:
    try:
        postgres = Postgres()
    except NotInstalled as missing:
        print(f"No {missing} here: the database tests ran on SQLite only.", flush=True)
        return Outcome(Counter(), green=os.environ.get("CI") != "true")
    try:
        return run(replace(stage, env={"DATABASE_URL": postgres.url}), arguments)
    finally:
        postgres.remove()


def run(stage: Stage, arguments: Sequence[str], *, live: bool = False) -> Outcome:
    """Run a stage on the paths it has in common with the arguments.

    `live` shows its tests as they pass.
    """
    given = [word for word in arguments if (REPOSITORY / word.split("::")[0]).exists()]
    paths = list(in_common(given, stage.paths)) if given else existing(stage.paths)
    if not paths:
        return Outcome(Counter(), green=True)
    others = [word for word in arguments if word not in (*given, QUICK, ON_DEMAND, FREE)]
    options = [on_demand(word) if ON_DEMAND in arguments else word for word in stage.options]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command: list[str | Path] = [stage.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        if IGNORED and not stage.env:  # requests are generated on PostgreSQL; their plugin is slow to load
            command += ["-p", "no:schemathesis"]
        command += [f"--junit-xml={report}", *others, *paths]
        code = execute(command, stage, live=live)
        counts = read_counts(report)
    return Outcome(counts, green=code == 0 or (code == NOTHING_SELECTED and bool(arguments)))


def on_demand(option: str) -> str:
    """The same choice of tests, but of the slow ones."""
    for marked in (SLOW_ON_SQLITE, SLOW):
        option = option.replace(f"and not {marked}", f"and {marked}")
    return option


def execute(command: Sequence[str | Path], stage: Stage, *, live: bool) -> int:
    """Run pytest and return its exit code.

    Output that is not live is printed whole at its end, so that no two stages mix.
    """
    heading, env = f"\n== {stage.title}", {**os.environ, **stage.env}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes load the same modules
    if live:
        print(heading, flush=True)
        return subprocess.run(command, cwd=REPOSITORY, env=env).returncode
    done = subprocess.run(
        command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(f"{heading}\n{done.stdout}", flush=True)
    return done.returncode


def in_common(given: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """The narrower one of each pair of which one lies in the other."""
    for word in given:
        if word.startswith(tuple(paths)):
            yield word
        else:
            yield from (path for path in paths if path.startswith(word.rstrip("/") + "/"))


def existing(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if (REPOSITORY / path).exists()]


def read_counts(report: Path) -> Counter[str]:
    """The counts of pytest's JUnit report; none if pytest did not get that far."""
    counts: Counter[str] = Counter()
    if report.exists():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            counts.update({name: int(suite.get(name, 0)) for name in COUNTED})
    return counts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
