"""A portal in a process of its own.

It loads the portal once and runs each command in a fork of itself. It reads one `{"command":
[...], "path": PATH}` per line and answers with `{"code", "out", "err"}`. Beside the commands of
manage.py there are `fill`, which makes a portal with something of everything, and `tell`, which
reports its contents.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import execute_from_command_line

PASSWORD = "a password to remember"


def main() -> None:
    django.setup()
    import_module(settings.ROOT_URLCONF)
    for line in sys.stdin:
        print(json.dumps(in_a_fork(**json.loads(line))), flush=True)


def in_a_fork(command: Sequence[str], path: str) -> dict[str, Any]:
    """The output and exit status of a process of its own."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), sys.stdout.fileno())
            os.dup2(err.fileno(), sys.stderr.fileno())
            os.environ["PATH"] = path
            os._exit(run(command))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return {"code": code, "out": out.read(), "err": err.read()}


def run(command: Sequence[str]) -> int:
    """Run a command and return its exit code.

    Nothing is raised, or the fork would go on as its parent.
    """
    try:
        if command[0] in OWN:
            print(json.dumps(OWN[command[0]](*command[1:])))
        else:
            execute_from_command_line(["manage.py", *command])
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:  # noqa: BLE001 - see above
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def fill() -> dict[str, Any]:
    from django.core.management import call_command
    from django.utils import timezone

    from knowledge.models import PredictorVersion
    from tests.harness import fake_node, world

    call_command("migrate", verbosity=0)
    owner = world.user("ada")
    owner.set_password(PASSWORD)
    owner.save()
    node = world.fake_node()
    world.placed_job(node, owner=owner)
    order = node.take_up()
    node.run(order, fake_node.step(1))
    assert node.upload(order, "adapter/model.bin", b"weights").status_code == 204
    node.end(order, "succeeded", fake_node.result())
    model = Path(settings.DATA_DIR) / "predictors" / "1.skops"
    model.parent.mkdir()
    model.write_bytes(b"a trained predictor")
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    now = timezone.now()
    PredictorVersion.objects.create(number=1, path=model.name, sha256=digest, rows=1, created_at=now)
    return tell()


def tell() -> dict[str, Any]:
    """Rows of every table, what a person can do, and the digests of the files."""
    from django.core.management import call_command
    from django.test import Client

    from scheduler.models import Job

    rows = io.StringIO()
    call_command("dumpdata", "accounts", "events", "scheduler", "knowledge", stdout=rows)
    browser = Client()
    job = Job.objects.get()
    answer = browser.post("/login/", {"username": "ada", "password": PASSWORD})
    download = browser.get(f"/api/jobs/{job.pk}/artifacts/adapter/model.bin")
    return {
        "rows": [row for row in json.loads(rows.getvalue()) if row["model"] != "accounts.auditentry"],
        "signed_in": answer.headers.get("Location"),
        "artifact": b"".join(download.streaming_content).decode(),
        "files": sorted(
            (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
            for folder in ("files", "artifacts", "predictors")
            for path in (Path(settings.DATA_DIR) / folder).rglob("*")
            if path.is_file()
        ),
    }


OWN: dict[str, Callable[..., Any]] = {
    "fill": fill,
    "tell": tell,
}

if __name__ == "__main__":
    main()
