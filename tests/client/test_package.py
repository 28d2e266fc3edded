"""The client as a wheel: built by one command, installed by the page's line, asked from a shell."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from client.foretune import __version__
from portal.accounts.models import Scope
from portal.accounts.services import create_token
from portal.clock import database_now
from tests.harness import world
from trainer import __version__ as release

NEEDS = ["click", "httpx2", "pyyaml", "keyring"]  # the last one is optional
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the one command fills."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "portal.wheels", str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A new environment without a network; what the client needs is there already."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    libraries = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    (libraries / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return tmp_path


def installed(machine: Path, *what: str) -> Path:
    """Install without an index and return the folder of programs."""
    pip = [sys.executable, "-m", "pip", "--python", "env", "install", "--no-deps", "--no-index", *what]
    done = subprocess.run(pip, cwd=machine, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return machine / "env" / "bin"


def test_one_command_builds_both_wheels_of_this_release(built: Path) -> None:
    assert {file.name for file in built.iterdir()} == {
        f"foretune-{release}-py3-none-any.whl",
        f"foretune_node-{release}-py3-none-any.whl",
    }


def test_the_wheel_holds_the_client_its_licence_and_nothing_of_the_portal(built: Path) -> None:
    apart = f"foretune-{release}.dist-info/"
    wheel = next(built.glob("foretune-*.whl"))
    assert wheel.stat().st_size < 300_000
    with zipfile.ZipFile(wheel) as opened:
        packed = {name: opened.read(name) for name in opened.namelist()}
    ours = {name: text for name, text in packed.items() if not name.startswith(apart)}
    sources = [path for path in (ROOT / "client" / "foretune").rglob("*") if path.suffix in (".py", ".typed")]
    assert ours == {str(path.relative_to(ROOT / "client")): path.read_bytes() for path in sources}
    assert packed[f"{apart}licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    metadata = Parser().parsestr(packed[f"{apart}METADATA"].decode())
    assert (metadata["Name"], metadata["Version"]) == ("foretune", release)
    assert [re.split("[<>=]", need)[0] for need in metadata.get_all("Requires-Dist")] == NEEDS


def test_both_wheels_live_in_one_environment_and_start(built: Path, machine: Path) -> None:
    programs = installed(machine, *map(str, built.glob("*.whl")))
    for program in ("foretune", "foretune-node"):
        said = subprocess.run([programs / program, "--help"], cwd=machine, capture_output=True, text=True)
        assert f"usage: {program}" in said.stdout.lower()
    said = subprocess.run([programs / "foretune", "version"], cwd=machine, capture_output=True, text=True)
    assert said.stdout == f"foretune {release}\n"


@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
def test_the_line_of_the_page_installs_a_client_that_asks_this_portal(
    live_server: LiveServer, machine: Path
) -> None:
    person = world.admin()
    _, token = create_token(owner=person, name="shell", scope=Scope.WRITE, now=database_now())
    browser = Client()
    browser.force_login(person)
    page = browser.get("/tokens/", headers={"Host": live_server.url.partition("://")[2]}).content.decode()
    line = next(line for line in re.findall(r"<pre[^>]*>([^<]*)</pre>", page) if "pip install" in line)
    assert line == f"pip install {live_server.url}/client/foretune-{__version__}-py3-none-any.whl"
    foretune = installed(machine, *shlex.split(line)[2:]) / "foretune"

    def ask(*arguments: str, token: str = token) -> subprocess.CompletedProcess[str]:
        env = {"FORETUNE_URL": live_server.url, "FORETUNE_TOKEN": token, "HOME": str(machine)}
        done = subprocess.run([foretune, *arguments], cwd=machine, env=env, capture_output=True, text=True)
        assert token not in done.stdout + done.stderr or not token
        return done

    assert json.loads(ask("api", "GET", "me/").stdout)["username"] == person.username
    assert json.loads(ask("api", "get", "/api/jobs/", "-q", "limit=2").stdout)["data"] == []
    for arguments, code, said in (
        (("api", "GET", "jobs/ftjob-none/"), 4, "There is no job"),
        (("api", "POST", "jobs/", "-d", "{}"), 2, "model"),
        (("api", "POST", "jobs/", "-d", "{"), 2, "not valid JSON"),
        (("api", "POST", "jobs/", "-d", "@nowhere.json"), 2, "nowhere.json"),
        (("api", "GET", "jobs/", "-q", "limit"), 2, "NAME=VALUE"),
    ):
        done = ask(*arguments)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert said in done.stderr
    assert ask("api", "GET", "me/", token="ft-wrong").returncode == 3
    assert "FORETUNE_TOKEN" in ask("api", "GET", "me/", token="").stderr


@pytest.mark.django_db
def test_the_portal_offers_the_wheel_of_its_own_release_to_everybody() -> None:
    answer = Client().get(f"/client/foretune-{release}-py3-none-any.whl")
    content = b"".join(answer.streaming_content)
    assert answer.status_code == 200
    assert answer["ETag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    told = Client().get("/client/").content.decode()
    assert told == f"http://testserver/client/foretune-{release}-py3-none-any.whl\n", "a shell installs that"
    other = Client().get("/client/foretune-0.0.1-py3-none-any.whl")
    assert (other.status_code, told.strip() in other.content.decode()) == (404, True)
    assert Client().post(f"/client/foretune-{release}-py3-none-any.whl").status_code == 405
