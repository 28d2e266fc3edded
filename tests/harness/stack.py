"""A live portal of real processes on random loopback ports.

Its leases are a few seconds long. Nothing restarts by itself here: a test kills and starts
processes by name.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from django.db import OperationalError, connections
from environ import Env

from portal.ops.launch import broker, preflight, processes, sample_data
from portal.ops.launch.supervisor import Child, Process, Supervisor
from tests.harness.portal_client import PortalClient
from tests.harness.servers import free_port

SHORT_LEASES = {
    "NODE_SUSPECT_S": "4",
    "NODE_LOST_S": "6",
    "NODE_BLOCKED_S": "20",
    "DECLINE_BACKOFF_S": "2",
    "ASSIGNED_TIMEOUT_S": "15",
    "STARTING_TIMEOUT_S": "90",
    "STOP_GRACE_S": "10",
    "CHECKPOINT_EVERY_S": "0.5",
    "TICK_EVERY_S": "1",
    "TICK_TAKEOVER_S": "3",
    "SYNC_EVERY_S": "0.5",
    "SWEEP_EVERY_S": "3",
    "SIMULATION_LEASE_S": "4",
    "RATE_LIMIT": "100000/min",
}
PATIENCE_S = 300.0  # with what hangs; a busy machine needs minutes for seconds
SERVERS = frozenset({"DATABASE_URL", "REDIS_URL"})  # the stack is told which, whatever the tests use
PREPARE = """
import django, json
django.setup()
from django.utils import timezone
from portal.accounts.models import Scope, User
from portal.accounts.services import create_token
from portal.ops.launch import prepare
prepare.call("migrate", verbosity=0)
prepare.call("collectstatic", interactive=False, verbosity=0)
people = json.loads(prepare.call("bootstrap_users", json=True))
token = prepare.call("join_token", uses=20, hours=2).strip()
admin = User.objects.get(username="admin")
_, whole = create_token(owner=admin, name="tests", now=timezone.now(), scope=Scope.ADMIN)
api = prepare.first_job_token(always=True)
print(json.dumps({"join": token, "api": api, "admin": whole, "people": people}))
"""


def until(
    true: Callable[[], Any], *, timeout_s: float = PATIENCE_S, every_s: float = 0.05, what: str = ""
) -> Any:
    """The first true answer. Raises AssertionError after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while True:
        if answer := true():
            return answer
        assert time.monotonic() < end, f"not within {timeout_s:g} s: {what or true}"
        time.sleep(every_s)


class Stack:
    """Broker, web, workers, beat and node agents; `client` acts as an ordinary user."""

    def __init__(
        self, *, database_url: str = "", redis_url: str = "", leases: Mapping[str, str] = SHORT_LEASES
    ) -> None:
        self.leases = leases
        self.root = Path(tempfile.mkdtemp(prefix="foretune-stack-"))
        self.root.chmod(0o711)
        self.data, self.port = self.root / "data", free_port()
        self.data.mkdir(mode=0o711)
        self.url = f"http://127.0.0.1:{self.port}"
        self.alias = f"stack-{self.port}"  # this stack's database beside the one pytest-django makes
        self.socket = None if redis_url else broker.socket_in(self.data / "broker")
        self.supervisor = Supervisor(
            env=self._environment(database_url, redis_url), log_dir=self.data / "log", say=print
        )
        self._add_database(self.supervisor.env["DATABASE_URL"])

    def _environment(self, database_url: str, redis_url: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in SERVERS}
        own = {"DATA_DIR": str(self.data), "DJANGO_SETTINGS_MODULE": "portal.settings"}
        own["CELERY_BROKER_URL"] = broker.url(self.socket) if self.socket else redis_url
        own["DATABASE_URL"] = database_url or f"sqlite:///{self.data / 'portal.sqlite3'}"
        return {**inherited, **self.leases, **own}

    def _add_database(self, database_url: str) -> None:
        """Let tests read the stack's rows: `Job.objects.using(stack.alias)`."""
        parsed = Env.db_url_config(database_url)
        connections.settings[self.alias] = {**connections.settings["default"], "OPTIONS": {}, **parsed}

    def start(self, *, past: str = "") -> Stack:
        """Start the portal and wait until it serves.

        past: Python that makes rows before any process could take them for its work; it prints nothing
        """
        if self.socket is not None:
            self.start_broker()
        self.start_web_alone(past)
        for queue in ("control", "work", "predict"):
            self.supervisor.start(processes.worker(queue))
        self.supervisor.start(processes.beat())
        preflight.wait_until_served(self.url)
        self.training_file = self._upload_corpus()
        return self

    def start_web_alone(self, past: str = "") -> None:
        """The database, people and tokens, and the web server alone."""
        code = [sys.executable, "-c", PREPARE + past]
        # Without leases of seconds, which the node of the past would outlive on a busy machine.
        env = {name: value for name, value in self.supervisor.env.items() if name not in self.leases}
        done = subprocess.run(code, env=env, check=True, stdout=subprocess.PIPE, text=True)
        tokens = json.loads(done.stdout)
        (self.root / "join_token").write_text(tokens["join"])
        self.token = tokens["api"]
        self.passwords = {person["username"]: person["password"] for person in tokens["people"]}
        self.client = PortalClient(self.url, self.token)
        self.admin_token = tokens["admin"]
        self.admin = PortalClient(self.url, self.admin_token)
        self.supervisor.start(processes.web("127.0.0.1", self.port))

    def _upload_corpus(self) -> str:
        path = self.root / "corpus.jsonl"
        subprocess.run([sys.executable, "-m", sample_data.__name__, str(path), "64"], check=True)
        return self.client.upload(path)

    def start_broker(self) -> None:
        server = broker.find_server()
        assert server is not None
        assert self.socket is not None
        self.supervisor.start(broker.process(server, self.data / "broker", self.socket))
        broker.wait_until_up(self.socket)

    def start_web(self, name: str) -> PortalClient:
        """Another web server beside the first; returns the same user's client of it."""
        port = free_port()
        self.supervisor.start(processes.web("127.0.0.1", port, name))
        url = f"http://127.0.0.1:{port}"
        preflight.wait_until_served(url)
        return PortalClient(url, self.token)

    def start_agent(self, name: str, slots: int = 1) -> Child:
        """Start a node with CPU slots and wait until it is ready.

        A node that is started again later goes on in the same folder.
        """
        self.launch_agent(name, slots)
        self.client.wait_for_node(name)
        return self[name]

    def launch_agent(self, name: str, slots: int = 1, portal: str = "") -> None:
        """portal: where it finds the portal, if not where everybody does."""
        folder = self.root / "nodes" / name
        folder.parent.mkdir(mode=0o711, exist_ok=True)
        options = ("--name", name, "--slots", str(slots))
        made = processes.agent(
            portal or self.url, folder, self.root / "join_token", "--no-speed-test", *options
        )
        self.supervisor.start(Process(name=name, command=made.command, stop_s=made.stop_s))

    def __getitem__(self, name: str) -> Child:
        return self.supervisor.children[name]

    def kill(self, name: str) -> None:
        """Kill the process and its group with SIGKILL.

        Trainings are in groups of their own and live on.
        """
        self.signal_group(name, signal.SIGKILL)
        self[name].popen.wait()

    def signal_group(self, name: str, number: signal.Signals) -> None:
        """To a process and its children, e.g. a Celery worker with its pool."""
        os.killpg(self[name].popen.pid, number)

    def pause(self, name: str, *, when: Callable[[], bool] = lambda: True) -> None:
        """Stop a process and its children with SIGSTOP, outside any transaction.

        In a transaction, its locks would hold up everything else.
        """

        def paused() -> bool:
            until(when, every_s=0.001, what=f"the moment to pause {name}")
            self.signal_group(name, signal.SIGSTOP)
            if when() and self._nothing_is_locked():
                return True
            self.signal_group(name, signal.SIGCONT)
            return False

        until(paused, what=f"{name} between two transactions")

    def _nothing_is_locked(self) -> bool:
        """Return whether no process is in the middle of a transaction.

        Stopped processes count above all.
        """
        with connections[self.alias].cursor() as cursor:
            if connections[self.alias].vendor == "postgresql":
                cursor.execute(
                    "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
                    " AND state <> 'idle' AND pid <> pg_backend_pid())"
                )
                return bool(cursor.fetchone()[0])
            try:
                cursor.execute("PRAGMA busy_timeout = 200")
                cursor.execute("BEGIN IMMEDIATE")
                cursor.execute("ROLLBACK")
            except OperationalError:
                return False
            return True

    def submit(self, *, key: str = "", **params: Any) -> str:
        """A small job on the built-in model; returns its id."""
        values: Mapping[str, Any] = {"max_steps": 2, "tokens_per_sample": 64, "seed": 7, **params}
        job = self.client.submit(
            model="builtin/tiny-llama", training_file=self.training_file, params=values, key=key
        )
        return str(job["id"])

    def trainings(self, node: str = "") -> list[psutil.Process]:
        """Live training processes of this stack's nodes, or of one of them."""
        place, found = str(self.root / "nodes" / node), []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                if process.status() != psutil.STATUS_ZOMBIE and any(
                    word.startswith(place) and "/runs/" in word for word in words
                ):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def kill_trainings(self, node: str = "") -> None:
        """kill -9 every training process of this stack's nodes, or of one of them."""
        for training in self.trainings(node):
            with contextlib.suppress(psutil.NoSuchProcess):  # without its peers it may have ended by itself
                training.kill()

    def stop(self) -> None:
        """Kill all processes and delete the stack's folder.

        Orderly ends would take some seconds per process, and nothing here is worth keeping.
        """
        for child in self.supervisor.children.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.popen.pid, signal.SIGKILL)
            child.popen.wait()
        self.supervisor.children.clear()
        preflight.end_leftovers(self.root / "nodes")
        self.kill_trainings()
        connections[self.alias].close()
        shutil.rmtree(self.root, ignore_errors=True)


def with_one_node(made: Stack, *, past: str = "") -> Iterator[Stack]:
    """Provide the stack with a node of one slot, for fixtures.

    Nothing of the node remains afterwards.
    """
    try:
        made.start(past=past)
        made.start_agent("alpha")
        yield made
    finally:
        made.stop()
