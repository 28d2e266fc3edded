"""The files that a stranger finds first are there, and say what is true of this tree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import suite
from trainer import __version__

ROOT = Path(__file__).resolve().parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def paths_in(text: str) -> set[str]:
    """The texts in backticks that are meant as paths: with a slash, of plain words."""
    return {word for word in re.findall(r"`([\w./-]+/[\w./-]*)`", text) if not word.startswith("/")}


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_every_path_that_contributors_are_led_to_is_there(name: str) -> None:
    text = (ROOT / name).read_text()
    assert [path for path in sorted(paths_in(text)) if not (ROOT / path).exists()] == []
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)}
    assert [link for link in sorted(links) if "://" not in link and not (ROOT / link).exists()] == []


def test_there_is_a_checklist_for_each_usual_change() -> None:
    reported = CONTRIBUTING.partition("## Checklists")[2]
    assert re.findall(r"^### (.+)$", reported, re.MULTILINE) == [
        "A scheduling policy: 3 files",
        "A job's term: 5 files",
        "A recipe: 4 files",
        "A tuning",
        "A parameter that binds at submit: 3 files",
        "A parameter that binds at dispatch: 6 files",
        "A page: 5 files",
        "A resource of the REST API",
        "An executor: 2 files",
        "A step metric: 4 files",
        "A channel of notices: 4 files",
    ]


def test_continuous_integration_runs_what_contributors_run() -> None:
    steps = loaded(".github/workflows/ci.yml")["jobs"]["everything"]["steps"]
    assert ".ci/run" in [step.get("run") for step in steps]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert "\npython3 run.py lint " in (ROOT / ".ci" / "run").read_text()
    hooks = [hook["entry"] for repo in loaded(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert "python3 run.py lint" in hooks


@pytest.mark.parametrize("form", ["bug", "idea"])
def test_issue_forms_are_forms(form: str) -> None:
    reported = loaded(f".github/ISSUE_TEMPLATE/{form}.yml")
    assert {"name", "description", "body"} <= set(reported)
    kinds = {"textarea", "input", "dropdown"}
    assert all(field["type"] in kinds and field["attributes"]["label"] for field in reported["body"])


def test_the_release_is_written_once_in_each_wheel() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = [name for name in tracked.stdout.split() if re.search(r"\.(py|toml)$", name)]
    assert "trainer/__init__.py" in sources
    written = re.compile(rf"""["']{re.escape(__version__)}["']""")
    found = [name for name in sources if written.search((ROOT / name).read_text())]
    assert found == ["client/foretune/__init__.py", "trainer/__init__.py"]


def test_the_changelog_of_a_release_is_of_three_parts_with_a_line_for_each_change() -> None:
    releases = re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]
    named = {release.partition("\n")[0].strip(): release for release in releases}
    assert __version__ in named
    for release in named.values():
        assert set(re.findall(r"^### (.+)$", release, re.MULTILINE)) <= {"Added", "Changed", "Fixed"}
    reported = [line for line in named[__version__].splitlines()[1:] if line and not line.startswith("#")]
    assert all(line.startswith("- ") for line in reported)


def test_run_py_names_its_commands() -> None:
    said = subprocess.run([sys.executable, "run.py", "--help"], cwd=ROOT, capture_output=True, text=True)
    for command in ("setup", "lint", "test", "wheels", "chaos", "screenshots"):
        assert f"run.py {command} " in said.stdout


def test_each_file_of_tests_belongs_to_one_stage_in_process() -> None:
    paths = [ROOT / path for stage in suite.SQLITE for path in stage.paths]
    files = list((ROOT / "tests").rglob("test_*.py"))
    assert [file for file in files if sum(file.is_relative_to(path) for path in paths) != 1] == []


def test_the_environment_of_another_clone_is_not_emptied(tmp_path: Path) -> None:
    import run

    other, link = tmp_path / "other", tmp_path / "link"
    other.mkdir()
    (other / "pyvenv.cfg").touch()
    link.symlink_to(other)
    with pytest.raises(run.SetupFailed, match="link to another environment"):
        run.Environment(str(link)).create()
    assert (other / "pyvenv.cfg").exists()


def test_pytorch_is_installed_only_for_tests_that_may_need_it() -> None:
    import run

    assert not run.trains(["--quick"])
    assert not run.trains(["-x", "tests/portal/web/common/test_errors.py::test_x", "tests/test_docs.py"])
    assert all(
        run.trains(words)
        for words in ([], ["-k", "word"], ["tests"], ["tests/test_docs.py", "tests/trainer"])
    )
    light = [
        file
        for file in (ROOT / "tests").rglob("*.py")
        if str(file.relative_to(ROOT)).startswith(run.LIGHT_TESTS) and file != Path(__file__)
    ]
    trainings = ("mark.torch", "mark.stack", "venv-train", "training_environment")
    assert light
    assert [file for file in light if any(word in file.read_text() for word in trainings)] == []
