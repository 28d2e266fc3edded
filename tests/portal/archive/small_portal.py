"""A portal in a process of its own: `fill` makes one with something of everything, `tell` says what is there.

python -m tests.portal.archive.small_portal fill|tell
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import django

PASSWORD = "a password to remember"


def main() -> None:
    django.setup()
    print(json.dumps({"fill": fill, "tell": tell}[sys.argv[1]]()))


def fill() -> dict[str, Any]:
    from django.conf import settings
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
    from django.conf import settings
    from django.core.management import call_command
    from django.test import Client

    from scheduler.models import Job

    rows = io.StringIO()
    call_command("dumpdata", "accounts", "scheduler", "knowledge", stdout=rows)
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


if __name__ == "__main__":
    main()
