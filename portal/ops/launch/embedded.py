"""The embedded portal.

It prepares the data folder, starts every process, runs the first job, and stops all.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rich.console import Console

from portal.ops.launch import broker, preflight, processes
from portal.ops.launch.first_job import FirstJob
from portal.ops.launch.preflight import LaunchFailed
from portal.ops.launch.supervisor import Supervisor

LINE_WIDTH = 130
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of run.py."""

    host: str
    port: int
    data: Path
    once: bool
    train: bool
    speed_test: bool = True
    online: bool = False


class EmbeddedPortal:
    """One portal on one machine, from start to stop."""

    def __init__(self, options: Options) -> None:
        self.options, self.stop = options, Event()
        # Into a file or a pipe, lines are not folded at 80 columns.
        self.console = Console() if sys.stdout.isatty() else Console(width=LINE_WIDTH)
        self.node = options.data / "node"
        local = "127.0.0.1" if options.host in ("0.0.0.0", "::") else options.host  # noqa: S104
        self.url = f"http://{f'[{local}]' if ':' in local else local}:{options.port}"
        self.socket: Path | None = None
        self.succeeded = True

    def run(self) -> int:
        """Returns the exit code: 1 if the first job failed and --once was given, else 0."""
        os.umask(0o077)  # other users of the machine read nothing in the data folder
        held = preflight.own_folder(self.options.data)
        preflight.check_port(self.options.host, self.options.port)
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup's wish stands
                signal.signal(number, signal.default_int_handler)
        supervisor = Supervisor(
            env=self.environment(), log_dir=self.options.data / "log", say=self.console.print
        )
        try:
            self.start(supervisor)
        except KeyboardInterrupt:
            self.stop.set()
        finally:
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave half of it running
            self.console.print("Stopping …")
            supervisor.stop()
            preflight.end_leftovers(self.node)
            if self.socket is not None and self.socket.parent != self.options.data / "broker":
                shutil.rmtree(self.socket.parent, ignore_errors=True)
            os.close(held)
        return 0 if self.succeeded or not self.options.once else 1

    def environment(self) -> dict[str, str]:
        """The environment of every process of the portal."""
        hosts = ["localhost", "127.0.0.1", "[::1]", self.options.host, socket.gethostname(), socket.getfqdn()]
        env = {
            "ALLOWED_HOSTS": ",".join(dict.fromkeys(hosts)),
            **os.environ,
            "DATA_DIR": str(self.options.data),
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
        }
        if not broker.configured(os.environ):
            env["CELERY_BROKER_URL"] = self._broker_url()
        return env

    def _broker_url(self) -> str:
        folder = self.options.data / "broker"
        if broker.find_server() is None:
            self.console.print("No Valkey or Redis here: messages go through files, which is slower.")
            for name in ("queue", "control"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            return "filesystem://"
        self.socket = broker.socket_in(folder)
        return broker.url(self.socket)

    def start(self, supervisor: Supervisor) -> None:
        options = self.options
        if self.socket is not None and (server := broker.find_server()):
            supervisor.start(broker.process(server, options.data / "broker", self.socket))
            broker.wait_until_up(self.socket)
        prepared = self.prepare(supervisor.env)
        supervisor.start(processes.web(options.host, options.port))
        for queue in ("control", "work", "predict"):
            supervisor.start(processes.worker(queue))
        supervisor.start(processes.beat())
        preflight.wait_until_served(self.url)
        if options.train:
            join_file = options.data / "join_token"
            join_file.write_text(prepared["join_token"])
            roots = prepared["model_roots"]
            options_of_agent = ("--model-roots", *roots) if roots else ()
            options_of_agent += () if options.speed_test else ("--no-speed-test",)
            options_of_agent += ("--online",) if options.online else ()
            supervisor.start(processes.agent(self.url, self.node, join_file, *options_of_agent))
        self.welcome(prepared)
        self.serve(supervisor, prepared["api_token"])

    def prepare(self, env: Any) -> dict[str, Any]:
        """Prepare database, static files, history, predictor, people and tokens.

        This is done in a process of their own.
        """
        command = [sys.executable, "-m", "portal.ops.launch.prepare"]
        command += ["--first-job", "always" if self.options.once else "new"]
        command += ["--node", str(self.node), "--address", self.url] if self.options.train else []
        # The steps print words for a terminal; one that fails ends them with its traceback.
        done = subprocess.run(
            command, env={"LOG_LEVEL": "CRITICAL", **env}, stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            raise LaunchFailed("The database could not be prepared; what went wrong stands above")
        return dict(json.loads(done.stdout.splitlines()[-1]))

    def welcome(self, prepared: dict[str, Any]) -> None:
        say = self.console.print
        say(f"\nForetune is running at {self.url}", style="bold", highlight=False)
        for person in prepared["people"]:
            text = f"  sign in as {person['username']:<6} password {person['password']}"
            say(text, highlight=False, markup=False)
        if prepared["people"]:
            manage = shlex.join([sys.executable, str(processes.REPOSITORY / "manage.py")])
            command = f"DATA_DIR={shlex.quote(str(self.options.data))} {manage} changepassword NAME"
            say("  (shown only now; this command changes one:)")
            say(f"  {command}", highlight=False, markup=False, soft_wrap=True)
        if os.geteuid() == 0:
            say("Started as root: trainings run as nobody if it can read this installation, else as root.")
        if not self.options.train:
            say("No node runs on this machine; docs/nodes.md says how to add one.")
        say("")

    def serve(self, supervisor: Supervisor, api_token: str) -> None:
        """Tend the processes until Ctrl-C; the first job is followed in a thread beside."""
        follower = Thread(target=self.first_job, args=(api_token,), daemon=True)
        if api_token and self.options.train:
            follower.start()
        else:
            self.ready()
        while not self.stop.is_set():
            supervisor.tend()
            time.sleep(0.5)

    def first_job(self, api_token: str) -> None:
        job = FirstJob(
            url=self.url, token=api_token, data=self.options.data, console=self.console, stop=self.stop
        )
        self.succeeded = False
        try:
            self.succeeded = job.run()
        except Exception:  # noqa: BLE001 -- shown in full; the portal itself goes on
            self.console.print_exception()
        self.ready()

    def ready(self) -> None:
        if self.options.once:
            self.stop.set()
        elif not self.stop.is_set():
            self.console.print("Ctrl-C stops everything.")
