"""A portal in a process of its own, for tests of the commands of administrators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[4]


class Portal:
    """A portal with a folder and a database of its own.

    It is reached by commands only.

    path: the folders in which programs are found
    """

    def __init__(self, data: Path, database_url: str, path: str = os.environ["PATH"]) -> None:
        self.data, self.path = data, path
        own = {"DATA_DIR": str(data), "DATABASE_URL": database_url, "ALLOWED_HOSTS": "testserver"}
        # WhiteNoise warns where collectstatic has not run.
        env = {**os.environ, **own, "LOG_LEVEL": "ERROR", "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.portal.ops.backup.small_portal"],
            cwd=REPOSITORY, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def _run(self, command: Sequence[str], path: str | None = None) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        print(
            json.dumps({"command": command, "path": path or self.path}), file=self._process.stdin, flush=True
        )
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def manage(self, *command: str) -> str:
        done = self._run(command)
        assert done["code"] == 0, done["err"]
        return str(done["out"])

    def refuses(self, *command: str, path: str | None = None) -> str:
        """Return the error text of a command that fails.

        It must not be a traceback, which is no help to an administrator.
        """
        done = self._run(command, path)
        assert done["code"] == 1, done["out"]
        assert "Traceback" not in done["err"]
        return str(done["err"])

    def small_portal(self, verb: str, *arguments: str) -> Any:
        return json.loads(self.manage(verb, *arguments).splitlines()[-1])

    def end(self) -> None:
        self._process.communicate()
