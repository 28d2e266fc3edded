"""Dockerfile and docker-compose.yml name only things that exist.

Production settings raise no warning.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
import yaml
from django.conf import settings
from django.core.management import get_commands
from django.test import Client
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from portal.configuration import gunicorn
from portal.ops.launch import processes
from portal.ops.launch.broker import find_server
from tests.harness.servers import free_port
from trainer.agent.loop import LONGEST_PAUSE_S
from trainer.agent.portal_api.client import retry_after_s
from trainer.agent.settings import read_settings

REPOSITORY = Path(__file__).resolve().parents[3]
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
OPERATIONS = (REPOSITORY / "docs" / "operations.md").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("foretune-")}
PORTAL = {name: service for name, service in OURS.items() if service["image"] == "foretune-portal"}


def words(service: dict[str, Any]) -> list[str]:
    return " ".join(service.get("command", [])).split()


def test_production_settings_pass_the_deployment_checks(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "DATA_DIR": str(tmp_path),
        "SECURE": "1",
        "SECRET_KEY": secrets.token_urlsafe(60),
        "DATABASE_URL": "postgresql://foretune:word@127.0.0.1:1/foretune",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "ALLOWED_HOSTS": "portal.example",
        "CSRF_TRUSTED_ORIGINS": "https://portal.example",
    }
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_production_does_not_start_without_a_secret_key(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "DATA_DIR": str(tmp_path), "SECURE": "1"}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "SECRET_KEY is missing" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_process_that_never_predicts_does_not_load_what_learns() -> None:
    pages = "from django.core.management import call_command; call_command('check')"
    tasks = "from portal.celery import app; app.loader.import_default_modules()"
    code = f"import django; django.setup(); {pages}; {tasks}"
    command = [sys.executable, "-X", "importtime", "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0
    loaded = set(re.findall(r"\| +(\S+)", done.stderr))
    assert {"knowledge.core.predict.predictor", "scheduler.simulator.inputs.profiles"} <= loaded
    assert not loaded & {"sklearn", "skops", "scipy"}


def variables() -> set[str]:
    """The variables that settings.py reads from the environment."""
    return set(re.findall(r'env\.\w+\(\s*"(\w+)"', (REPOSITORY / "portal" / "settings.py").read_text()))


@pytest.mark.parametrize("name", sorted(PORTAL))
def test_every_variable_of_the_portal_is_one_that_its_settings_read(name: str) -> None:
    assert set(PORTAL[name]["environment"]) <= variables()


def test_operations_explains_every_variable_and_names_no_other() -> None:
    table = [line.split("|")[1] for line in OPERATIONS.splitlines() if line.startswith("| `")]
    documented = {name for cell in table for name in re.findall(r"`([A-Z_]{4,})`", cell)}
    assert documented == variables()


def test_the_proxy_buffers_everything_but_what_agents_send() -> None:
    places = re.findall(r"location (\S+) \{(.*?)\}", OPERATIONS, re.DOTALL)
    assert {place: "proxy_request_buffering off" in text for place, text in places} == {
        "/": False,
        "/agent/": True,
    }
    assert "buffering off" not in re.sub(r"location \S+ \{.*?\}", "", OPERATIONS, flags=re.DOTALL)


def test_operations_names_commands_that_exist() -> None:
    assert set(re.findall(r"manage\.py (\w+)", OPERATIONS)) <= set(get_commands())


@pytest.mark.parametrize("name", sorted(PORTAL))
def test_every_command_exists(name: str) -> None:
    said = words(PORTAL[name])
    managed = [said[at + 1] for at, word in enumerate(said) if word == "manage.py"]
    assert set(managed) <= set(get_commands())


def test_every_queue_has_a_worker_and_one_beat_drives_them() -> None:
    commands = [words(service) for service in PORTAL.values()]
    served = {said[said.index("-Q") + 1] for said in commands if "-Q" in said}
    assert served == {queue.name for queue in settings.CELERY_TASK_QUEUES}
    assert sum("beat" in said for said in commands) == 1


def test_workers_in_containers_are_as_quiet_as_embedded_ones() -> None:
    for queue in ("control", "work", "predict"):
        quiet = {word for word in processes.worker(queue).command if word.startswith("--without-")}
        assert quiet == {word for word in words(PORTAL[queue]) if word.startswith("--without-")}


def test_a_connection_outlasts_every_pause_of_an_agent() -> None:
    response = httpx.Response(503, headers={"Retry-After": "3600"})
    assert gunicorn.keepalive > max(LONGEST_PAUSE_S, retry_after_s(response))
    from_here = " ".join(processes.web("127.0.0.1", 1).command)
    assert "-c python:portal.configuration.gunicorn" in from_here
    assert '"-c", "python:portal.configuration.gunicorn"' in DOCKERFILE


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_a_service_refers_to_is_there(name: str) -> None:
    service = SERVICES[name]
    for other, wait in service.get("depends_on", {}).items():
        if wait["condition"] == "service_healthy":
            assert "test" in SERVICES[other]["healthcheck"]
        else:
            assert SERVICES[other]["restart"] == "no", f"{other} would run for ever"
    assert {volume.split(":")[0] for volume in service["volumes"]} <= set(COMPOSE["volumes"])
    assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    assert {config["source"] for config in service.get("configs", [])} <= set(COMPOSE["configs"])


def test_redis_wants_its_password_and_stops_when_told(tmp_path: Path) -> None:
    program = find_server()
    if program is None:
        pytest.skip("no Redis or Valkey here")
    (tmp_path / "redis-server").symlink_to(program)
    port, service = free_port(), SERVICES["redis"]
    *shell, script = [word.replace("$$", "$") for word in service["command"]]
    script = script.replace("requirepass", f"port {port}\nrequirepass")
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **dict.fromkeys(service["environment"], "word")}
    server = subprocess.Popen([*shell, script], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    known = redis.Redis(port=port, password="word", retry=Retry(ConstantBackoff(0.1), 100))
    try:
        assert known.ping()
        assert known.config_get("appendonly") == {"appendonly": "yes"}
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).ping()
        server.terminate()
        assert server.wait(timeout=60) == 0
    finally:
        server.kill()
    assert "${REDIS_PASSWORD:?" in service["environment"]["REDISCLI_AUTH"]
    assert "redis://:${REDIS_PASSWORD:?" in PORTAL["web"]["environment"]["REDIS_URL"]


@pytest.mark.parametrize("name", sorted(OURS))
def test_each_image_of_ours_is_a_stage_of_the_dockerfile(name: str) -> None:
    assert f"AS {OURS[name]['build']['target']}\n" in DOCKERFILE


def test_the_dockerfile_copies_what_is_there() -> None:
    copied = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
    assert all((REPOSITORY / source).exists() for sources in copied for source in sources)
    for package in ("portal", "scheduler", "knowledge", "trainer", "client", "templates", "static"):
        assert [package] in copied


def test_the_nodes_command_is_one_the_agent_understands(tmp_path: Path) -> None:
    said = re.search(r"exec python -m trainer\.agent (.*?)\"\]", DOCKERFILE)
    assert said
    (tmp_path / "join").write_text("fjoin-token")
    given = said[1].replace('\\"$PORTAL\\"', "https://portal.example")
    given = given.replace("/run/secrets/join_token", str(tmp_path / "join"))
    assert read_settings(given.split()).portal == "https://portal.example"


def test_no_secret_is_written_in_the_files() -> None:
    for service in OURS.values():
        for name, value in service["environment"].items():
            if re.search("KEY|PASSWORD|TOKEN", name):
                assert value.startswith("${"), name


def test_the_health_check_of_the_image_passes_with_the_hosts_of_the_compose_file(settings: Any) -> None:
    settings.ALLOWED_HOSTS = [
        "portal.example",
        *PORTAL["web"]["environment"]["ALLOWED_HOSTS"].split("},")[1:],
    ]
    settings.SECURE_SSL_REDIRECT = True
    address = re.search(r"urlopen\('http://([\d.:]+)(/\w+)'", DOCKERFILE)
    assert address
    assert Client(headers={"Host": address[1]}).get(address[2]).status_code == 200


def test_behind_a_proxy_people_are_told_apart_by_the_address_it_saw(
    settings: Any, db: None, client: Client
) -> None:
    settings.TRUSTED_PROXIES = 1

    def refused(*path: str) -> bool:
        headers = {"X-Forwarded-For": ", ".join(path)}
        form = {"username": "ada", "password": "no"}
        return client.post("/login/", form, headers=headers).status_code == 429

    assert [refused(f"10.9.9.{n}", "192.0.2.1") for n in range(10)][-1], "an invented address let them go on"
    assert refused("192.0.2.1:50001"), "a port let them go on"
    assert not refused("192.0.2.2")
    assert [refused(f"[2001:db8::7]:{port}") for port in range(10)][-1]
