"""The examples of docs/programs.md, run as they stand against a live portal with a real training."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pytest

from client.foretune import Client
from portal import wheels
from scheduler.models import DatasetFile, Job
from scheduler.states import TERMINAL
from tests.harness.losing_proxy import by_key, losing_answers
from tests.harness.stack import PATIENCE_S, Stack, until
from tests.stack.documented import ACTIONS, actions, script
from tests.stack.jobs import LONG

PAGE = "docs/programs.md"
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the client's wheel; what it needs is there already."""
    folder = tmp_path_factory.mktemp("client")
    wheel = wheels.wheel(wheels.CLIENT, folder)
    venv.create(folder / "env", with_pip=False, symlinks=True)
    libraries = next((folder / "env" / "lib").glob("python*")) / "site-packages"
    (libraries / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "env"), "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    return folder / "env" / "bin"


def access(stack: Stack, environment: Path, folder: Path) -> dict[str, str]:
    """The environment variables of somebody who uses this portal, and their data."""
    (folder / "rows.jsonl").write_text((stack.root / "corpus.jsonl").read_text())
    told = {
        "PORTAL": stack.url,
        "TOKEN": stack.token,
        "FORETUNE_URL": stack.url,
        "FORETUNE_TOKEN": stack.token,
    }
    return {
        **told,
        "PATH": f"{environment}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONUNBUFFERED": "1",
    }


@pytest.mark.parametrize("client", ["foretune", "python", pytest.param("curl", marks=slow)])
def test_a_reader_goes_from_a_file_to_an_adapter(
    judged: Stack, environment: Path, client: str, tmp_path: Path
) -> None:
    text = script(PAGE, client)
    command = (
        [str(environment / "python"), "-c", text]
        if client == "python"
        else ["bash", "-euo", "pipefail", "-c", text]
    )
    env = access(judged, environment, tmp_path)
    before = set(Job.objects.using(judged.alias).values_list("pk", flat=True))
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=2 * PATIENCE_S
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert judged.token not in done.stdout + done.stderr
    made = Job.objects.using(judged.alias).exclude(pk__in=before).order_by("submitted_at")
    until(
        lambda: [job.state for job in made.all()] == ["succeeded", "cancelled"], what="the second job's end"
    )
    adapter = "output/adapter_model.safetensors"
    artifacts = judged.client.get(f"jobs/{made[0].pk}/artifacts/")["data"]
    sha256 = next(artifact["sha256"] for artifact in artifacts if artifact["path"] == adapter)
    assert hashlib.sha256((tmp_path / "out" / adapter).read_bytes()).hexdigest() == sha256


def test_each_main_action_has_an_example_for_each_client() -> None:
    shown = actions(PAGE)
    assert {action: shown[action] >= {"curl", "foretune", "python"} for action in ACTIONS} == dict.fromkeys(
        ACTIONS, True
    )


@slow
def test_watching_outlasts_a_portal_that_is_killed(judged: Stack, environment: Path, tmp_path: Path) -> None:
    settings = [word for name, value in LONG.items() for word in ("--set", f"{name}={value}")]
    run = ["run", "-m", "builtin/tiny-llama", "-d", "rows.jsonl", "--watch", "--yes", *settings]
    env = access(judged, environment, tmp_path)
    before = set(Job.objects.using(judged.alias).values_list("pk", flat=True))
    with subprocess.Popen(
        [environment / "foretune", *run],
        cwd=tmp_path,
        env=env,
        stdout=-1,
        stderr=subprocess.STDOUT,
        text=True,
    ) as watching:
        jobs = Job.objects.using(judged.alias).exclude(pk__in=before)
        until(lambda: [job.state for job in jobs.all()] == ["running"], what="the job runs")
        judged.kill("web")
        time.sleep(2.0)  # longer than the client's first tries
        judged["web"].start()
        said, _ = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode == 0, said
    assert "the portal is away" in said
    assert [job.state for job in jobs.all()] == ["succeeded"]


@slow
def test_lost_answers_make_nothing_twice(judged: Stack, tmp_path: Path) -> None:
    """Uploads, plans that are submitted, jobs, an array: the first answer to each never arrives."""
    intents = 100
    rows = (judged.root / "corpus.jsonl").read_text().splitlines(keepends=True)[:31]
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    jobs = Job.objects.using(judged.alias)
    files = DatasetFile.objects.using(judged.alias)
    jobs_before, files_before = jobs.count(), files.count()
    with (
        losing_answers(judged.url, is_first=by_key()) as (url, lost),
        Client(url, judged.token) as ft,
    ):
        file = ft.files.upload(tmp_path / "rows.jsonl")
        what = {"model": "builtin/tiny-llama", "training_file": file}
        made = [ft.jobs.submit(**what).id for _ in range(intents - 1)]
        made.append(ft.jobs.submit(ft.recommend("builtin/tiny-llama", file)).id)
        array = ft.jobs.submit_array([{"seed": 1}, {"seed": 2}], **what)
        try:
            assert len(lost) == 1 + intents + 1
            assert len(set(made)) == intents == jobs.count() - jobs_before - len(array.jobs)
            assert files.count() - files_before == 1
        finally:
            ft.request("POST", "jobs/cancel/", json={"ids": made})
            ft.arrays.act(array.id, "cancel")
    live = jobs.exclude(state__in=TERMINAL)
    until(lambda: not live.exists() and not judged.trainings(), every_s=0.2, what="the end of all jobs")


@slow
def test_an_environment_of_its_own_has_few_packages(tmp_path: Path) -> None:
    """With the index that pip knows here."""
    wheel = wheels.wheel(wheels.CLIENT, tmp_path / "packages")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "env")]
    subprocess.run([*pip, "install", str(wheel)], check=True, capture_output=True)
    listed = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True)
    assert len(listed.stdout.split()) <= 10, listed.stdout
    for words in (["--help"], ["version"], ["run", "--help"]):
        done = subprocess.run([tmp_path / "env" / "bin" / "foretune", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
