"""The node's part as a wheel.

The tests cover its contents, its access rights, and that a machine needs nothing else of ours.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from datetime import timedelta
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from portal import node_package, wheels
from portal.clock import database_now
from portal.limits.guesses import JOINING
from scheduler.models import JoinToken, Node
from scheduler.services.nodes.register import create_join_token
from scheduler.states import NodeState
from tests.harness import world
from tests.harness.stack import until
from trainer import __version__

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "requirements"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.conf.settings.DATA_DIR", tmp_path_factory.mktemp("data"))
        return node_package.wheel()


def metadata(file: Path) -> Any:
    with zipfile.ZipFile(file) as opened:
        text = opened.read(f"foretune_node-{__version__}.dist-info/METADATA").decode()
    return Parser().parsestr(text)


def ranges() -> set[str]:
    """What the node needs: names of packages."""
    files = (ROOT / "trainer").glob("requirements*.in")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return {re.split(r"[<>=\[; ]", line)[0] for line in lines}


def test_the_wheel_holds_the_trainer_its_licence_and_nothing_foreign(built: Path) -> None:
    assert built.name == f"foretune_node-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(built) as opened:
        packed = {name: opened.read(name) for name in opened.namelist()}
    apart = f"foretune_node-{__version__}.dist-info/"
    ours = {name: text for name, text in packed.items() if not name.startswith(apart)}
    sources = (ROOT / "trainer").rglob("*.py")
    assert ours == {str(path.relative_to(ROOT)): path.read_bytes() for path in sources}
    assert packed[f"{apart}licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_its_metadata_name_the_ranges_of_what_it_needs(built: Path) -> None:
    reported = metadata(built)
    assert (reported["Name"], reported["Version"], reported["License-Expression"]) == (
        "foretune-node",
        __version__,
        "Apache-2.0",
    )
    needs = reported.get_all("Requires-Dist")
    assert {re.split(r"[<>=; ]", need)[0] for need in needs} == ranges() >= {"torch", "bitsandbytes"}
    assert all("<" in need and ">=" in need for need in needs)


@pytest.mark.parametrize("folder", wheels.PROJECTS)
def test_it_is_built_with_the_setuptools_that_the_lock_brings(folder: str) -> None:
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    assert project["build-system"]["requires"] == (REQUIREMENTS / "build.in").read_text().split()


def test_the_same_sources_make_the_same_bytes(built: Path, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    again = node_package.wheel()
    assert again.read_bytes() == built.read_bytes()
    assert node_package.wheel().stat().st_mtime_ns == again.stat().st_mtime_ns, "it was built once more"


def test_constraints_pin_all_that_the_wheel_needs_and_name_no_host() -> None:
    pinned = node_package.constraints()
    names = {line.partition("==")[0] for line in pinned.splitlines()}
    assert names >= ranges()
    assert "://" not in pinned
    assert "--hash" not in pinned


def basic(token: str) -> str:
    return "Basic " + base64.b64encode(f"join:{token}".encode()).decode()


def ask(authorization: str, file: str = node_package.CONSTRAINTS) -> Any:
    return Client().get(node_package.PACKAGES + file, headers={"Authorization": authorization})


@pytest.mark.django_db
def test_who_may_join_may_download_as_often_as_needed_and_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    token = create_join_token(actor=world.admin(), now=database_now())
    file = node_package.wheel()
    for header in (basic(token), f"Bearer {token}", basic(token)):
        answer = ask(header, file.name)
        assert answer.status_code == 200
        assert b"".join(answer.streaming_content) == file.read_bytes()
        assert "no-store" in answer["Cache-Control"]
    assert ask(basic(token)).content.decode() == node_package.constraints()
    assert ask(basic(token), "foretune_node-0.0.1-py3-none-any.whl").status_code == 404
    assert JoinToken.objects.get().uses_left == 1
    late = create_join_token(actor=world.admin(), now=database_now() - timedelta(hours=2))
    for wrong in ("", "Basic", "Basic ÿ", basic("fjoin-wrong"), basic(late), f"Token {token}"):
        refused = ask(wrong, file.name)
        assert (refused.status_code, refused["WWW-Authenticate"].split()[0]) == (401, "Basic")
    JoinToken.objects.update(uses_left=0)
    assert ask(basic(token)).status_code == 401
    assert token not in caplog.text


@pytest.mark.django_db
def test_the_command_line_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    world.admin()
    call_command("join_token", portal="https://portal.example/")
    printed = capsys.readouterr().out.strip()
    token = printed.partition("FORETUNE_JOIN_TOKEN=")[2].split()[0]
    assert printed == node_package.join_command(portal="https://portal.example", token=token)
    assert "https://join:${FORETUNE_JOIN_TOKEN}@portal.example/agent/v1/packages/" in printed
    programs = [step for step in printed.split(" && ") if not step.startswith("export ")]
    assert len(programs) == 4
    assert all(token not in step for step in programs), "anybody on the machine reads command lines"


@pytest.mark.django_db
def test_guesses_at_the_download_count_as_those_at_enrolment() -> None:
    assert {ask(basic(f"fjoin-{n}")).status_code for n in range(JOINING.most)} == {401}
    assert ask(basic("fjoin-more")).status_code == 429
    assert Client().post("/agent/v1/enrol", "{}", content_type="application/json").status_code == 429


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A new environment without a network.

    Third-party packages are installed in it already.
    """
    venv.create(tmp_path / "foretune-node", with_pip=False, symlinks=True)
    libraries = next((tmp_path / "foretune-node" / "lib").glob("python*")) / "site-packages"
    (libraries / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return tmp_path


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_the_command_of_the_page_makes_a_machine_a_node(
    live_server: LiveServer, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = create_join_token(actor=world.admin(), now=database_now())
    _export, _make, write, install, start = node_package.join_command(
        portal=live_server.url, token=token
    ).split(" && ")
    monkeypatch.setenv("FORETUNE_JOIN_TOKEN", token)
    subprocess.run(["sh", "-c", write], cwd=machine, check=True)
    pip = [sys.executable, "-m", "pip", "--python", "foretune-node", *shlex.split(install)[1:]]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-index"], cwd=machine, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert token not in done.stdout + done.stderr
    left = [path for path in (machine / "foretune-node").rglob("*") if path.is_file()]
    assert not [path for path in left if token.encode() in path.read_bytes()]
    assert all(str(ROOT / "trainer") not in str(path.resolve()) for path in left)

    program = str(machine / shlex.split(start)[0])
    said = subprocess.run([program, "--help"], cwd=machine, capture_output=True, text=True)
    assert "usage: foretune-node" in said.stdout
    joining = [*shlex.split(start), "--slots=1", "--user=nobody,root", "--name=box"]
    agent = subprocess.Popen([str(machine / joining[0]), *joining[1:]], cwd=machine, stderr=subprocess.PIPE)
    try:
        until(lambda: Node.objects.filter(name="box", state=NodeState.READY).exists(), timeout_s=60)
    finally:
        agent.terminate()
        log = agent.communicate(timeout=300)[1]
    assert agent.returncode == 0, log
    assert Node.objects.get().software["foretune"] == __version__


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_pip_refuses_a_wheel_that_is_not_the_one_of_the_command(
    live_server: LiveServer, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = create_join_token(actor=world.admin(), now=database_now())
    right = hashlib.sha256(node_package.wheel().read_bytes()).hexdigest()
    command = node_package.join_command(portal=live_server.url, token=token)
    assert right in command
    _export, _make, write, install_line, _start = command.split(" && ")
    monkeypatch.setenv("FORETUNE_JOIN_TOKEN", token)
    subprocess.run(["sh", "-c", write.replace(right, "0" * 64)], cwd=machine, check=True)
    install = shlex.split(install_line)
    pip = [sys.executable, "-m", "pip", "--python", "foretune-node", *install[1:], "--no-deps", "--no-index"]
    done = subprocess.run(pip, cwd=machine, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
