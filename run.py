#!/usr/bin/env python3
"""Set up Foretune on this machine and run it, or test it: Python 3.11 is enough.

    python3 run.py            set up, start everything, train a first model, stay up until Ctrl-C
    python3 run.py --once     the same, and stop after the first job (exit code 1 if it failed)
    python3 run.py setup      only create the two environments
    python3 run.py lint       style, types, import rules, locks, settings, migrations: all but tests
    python3 run.py test       run all tests (--quick: those in process alone); further arguments go to pytest
    python3 run.py wheels     build the wheels of nodes and of the client, into dist
    python3 run.py chaos      break a real portal on purpose for twenty minutes, then judge it
    python3 run.py screenshots   photograph every page of a portal of simulated data, into var/screenshots

Standard library only: this file makes the environments in which everything else runs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from trainer.written import whole

HERE = Path(__file__).resolve().parent
# Not in a lock: its CPU and GPU builds differ in hash.
TORCH = (HERE / "requirements" / "torch.txt").read_text().strip()
HEAVY = ("nvidia-", "cuda-", "triton")
PIP_ENV = {
    **os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_USER": "0",
    "PYTHONWARNINGS": "ignore",
}  # fmt: skip
# Commands that hand all further arguments over to a module.
MODULES = {
    "test": "tests.suite",
    "chaos": "tests.chaos",
    "screenshots": "portal.ops.launch.screenshots",
    "wheels": "portal.wheels",
}
# Tests below these start no training, so that they need no PyTorch.
LIGHT_TESTS = tuple(
    f"tests/{name}" for name in ("portal/", "scheduler/", "knowledge/", "client/", "benchmarks/", "test_")
)
# Programs of the portal's environment, with their arguments; the longest first, beside which the others run.
CHECKS = (
    ("mypy",),
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("lint-imports",),
    ("python", "manage.py", "makemigrations", "--check", "--dry-run"),
    ("python", "manage.py", "check"),
)


class SetupFailed(Exception):
    """The environment cannot be made; the message says what to do."""


class Part(NamedTuple):
    """Something to install: its name, its digest and the way it gets there."""

    name: str
    digest: str
    install: Callable[[Environment], None]


class Environment:
    """A virtual environment beside this file.

    Its stamp lists the locks that it holds completely.
    """

    def __init__(self, folder: str) -> None:
        self.folder = HERE / folder
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "foretune.json"

    def holds(self) -> dict[str, str]:
        """Completely installed lock files, name -> digest; none if half-made."""
        try:
            return dict(json.loads(self.stamp.read_text())) if self.python.exists() else {}
        except (OSError, ValueError):
            return {}

    def ensure(self, parts: list[Part]) -> None:
        """Install what is missing of `parts`, in their order.

        A part that changed, or an installation that was cut off, makes the environment anew.
        """
        have = self.holds()
        if not have or any(have.get(part.name, part.digest) != part.digest for part in parts):
            have = {}
            self.create()
        missing = [part for part in parts if part.name not in have]
        if missing:
            self.stamp.unlink(missing_ok=True)
            for part in missing:
                part.install(self)
            have.update({part.name: part.digest for part in missing})
            self.stamp.write_text(json.dumps(have, indent=1))

    def create(self) -> None:
        if self.folder.is_symlink():  # what it leads to belongs to another clone, and would be emptied
            raise SetupFailed(f"{self.folder} is a link to another environment: remove it, then start again")
        foreign = self.folder.exists() and not (self.folder / "pyvenv.cfg").exists()
        if foreign and any(self.folder.iterdir()):
            raise SetupFailed(f"{self.folder} is not a virtual environment: move it away, then start again")
        if importlib.util.find_spec("ensurepip") is None:
            raise SetupFailed("This Python has no ensurepip: apt-get install python3-venv, then start again")
        try:
            venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(self.folder)
        except subprocess.CalledProcessError as error:
            raise SetupFailed(
                "Python could not put pip into a new environment; on Debian and Ubuntu: "
                "apt-get install python3-venv, then start again"
            ) from error

    def pip(self, what: str, *arguments: str) -> None:
        command = [str(self.python), "-m", "pip", "install", "-qq", *arguments]
        with ProgressLine(f"Installing {what} into {self.folder.name}"):
            done = subprocess.run(command, env=PIP_ENV, capture_output=True, text=True)
        if done.returncode:
            raise SetupFailed(
                f"pip could not install {what}:\n{(done.stderr or done.stdout).strip()[-3000:]}"
            )


class ProgressLine:
    """One line that says what is going on and how long it took."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __enter__(self) -> None:
        self.began = time.monotonic()
        print(f"{self.text} …", end=" ", flush=True)

    def __exit__(self, failed: object, *_: object) -> None:
        print("failed" if failed else f"{time.monotonic() - self.began:.0f} s", flush=True)


def lock(name: str, *options: str) -> Part:
    """Return a lock file as a part of an environment.

    Hashes are required and nothing is resolved anew.
    """
    file = HERE / "requirements" / f"{name}.lock"
    arguments = ("--no-deps", "--require-hashes", *options, "-r", str(file))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Part(file.name, digest, lambda environment: environment.pip(file.name, *arguments))


def portal_environment(*, tests: bool) -> Environment:
    environment = Environment(".venv")
    # One sdist needs the pinned setuptools at build time, hence the order and no build isolation.
    parts = [lock("build"), lock("core", "--no-build-isolation")]
    environment.ensure([*parts, lock("dev")] if tests else parts)
    return environment


def training_environment() -> Environment:
    environment = Environment(".venv-train")
    parts = [Part("torch", TORCH, install_torch), lock("train")]
    environment.ensure([*parts, lock("gpu")] if shutil.which("nvidia-smi") else parts)
    return environment


def install_torch(environment: Environment) -> None:
    """Install PyTorch as the machine's index offers it.

    Without a GPU the small CPU build is tried first.
    """
    if is_light(environment) or shutil.which("nvidia-smi"):
        return environment.pip(TORCH, TORCH)
    print("The package index offers PyTorch with CUDA only: about 3 GB to download, 7 GB on disk.")
    print("This machine has no NVIDIA GPU, so the CPU build (about 200 MB) is tried first.")
    environment.pip("uv", "uv")
    command = [str(environment.python), "-m", "uv", "pip", "install", "-q", "-p", str(environment.python)]
    with ProgressLine(f"Installing {TORCH} for CPUs"):
        if (
            subprocess.run([*command, "--torch-backend=cpu", TORCH], stderr=subprocess.DEVNULL).returncode
            == 0
        ):
            return None
    print("The CPU build is out of reach from here; --no-train would start the portal without PyTorch.")
    return environment.pip(f"{TORCH} with CUDA (3 GB)", TORCH)


def is_light(environment: Environment) -> bool:
    """Would pip take a build without CUDA packages? Asks the index, installs nothing."""
    command = [str(environment.python), "-m", "pip", "install", "-qq", "--dry-run", "--report", "-", TORCH]
    answer = subprocess.run(command, env=PIP_ENV, capture_output=True, text=True)
    if answer.returncode:
        raise SetupFailed(f"pip finds no {TORCH}:\n{answer.stderr.strip()[-2000:]}")
    names = [entry["metadata"]["name"].lower() for entry in json.loads(answer.stdout)["install"]]
    return not any(name.startswith(HEAVY) for name in names)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("command", nargs="?", default="run", choices=("run", "setup", "lint", *MODULES))
    made.add_argument("--host", default="127.0.0.1", help="address the web server listens on")
    made.add_argument("--port", type=whole, default=8000, help="port of the web server (8000)")
    made.add_argument("--data", default="", help="folder that holds everything (var beside run.py)")
    made.add_argument("--once", action="store_true", help="stop after the first job")
    made.add_argument("--dev", action="store_true", help="install what tests and linters need, too")
    made.add_argument("--no-train", action="store_true", help="no PyTorch and no node on this machine")
    made.add_argument("--no-speed-test", action="store_true", help="the local node tests no speed first")
    made.add_argument("--online", action="store_true", help="the local node may download models from the hub")
    return made


def run(options: argparse.Namespace) -> None:
    python = portal_environment(tests=options.dev).python
    if not options.no_train:
        training_environment()
    if options.command == "setup":
        print("Both environments are complete." if not options.no_train else "The environment is complete.")
        return
    data = Path(options.data).resolve() if options.data else HERE / "var"
    arguments = [f"--host={options.host}", f"--port={options.port}", f"--data={data}"]
    arguments += ["--once"] * options.once + ["--no-train"] * options.no_train
    arguments += ["--no-speed-test"] * options.no_speed_test + ["--online"] * options.online
    hand_over(python, "portal.ops.launch", arguments)


def lint() -> None:
    """Run every check, two at a time, also after one has failed.

    Leaves with the names of those that failed.
    """
    programs, failed = portal_environment(tests=True).python.parent, []
    with tempfile.TemporaryDirectory() as data, ThreadPoolExecutor(max_workers=2) as lanes:

        def made(check: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [programs / check[0], *check[1:]],
                cwd=HERE,
                env={**os.environ, "DATA_DIR": data},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

        for check, done in zip(CHECKS, lanes.map(made, CHECKS), strict=True):
            print(done.stdout, end="", flush=True)
            failed += [" ".join(check)] * (done.returncode != 0)
    for file in sorted((HERE / "requirements").glob("*.lock")):
        if "://" in file.read_text():
            failed.append(f"{file.name} names a host: write it anew with requirements/lock.sh")
    if failed:
        sys.exit("Failed: " + "; ".join(failed))


def trains(arguments: list[str]) -> bool:
    """Do the named tests need PyTorch? All tests together do."""
    paths = [word for word in arguments if (HERE / word.split("::")[0]).exists()]
    if "--quick" in arguments:
        return False
    return not paths or not all(path.startswith(LIGHT_TESTS) for path in paths)


def hand_over(python: Path, module: str, arguments: list[str]) -> None:
    """Go on as `module` in the same process, so that signals need no relay."""
    os.chdir(HERE)
    sys.stdout.flush()
    os.execv(python, [str(python), "-m", module, *arguments])  # noqa: S606 -- a shell is what we avoid


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 -- this file is what an older Python is started with
        sys.exit(f"Foretune needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    try:
        if sys.argv[1:2] == ["lint"]:
            lint()
        elif module := MODULES.get("".join(sys.argv[1:2])):
            python = portal_environment(tests=True).python
            if module.startswith("tests.") and trains(sys.argv[2:]):
                training_environment()
            hand_over(python, module, sys.argv[2:])
        else:
            run(parser().parse_args())
    except SetupFailed as failed:
        sys.exit(str(failed))
    except PermissionError as error:
        sys.exit(f"No permission to write {error.filename}: run from a folder that is yours")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted; start again to go on.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
