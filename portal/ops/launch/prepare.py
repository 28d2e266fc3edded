"""Bring the database of an embedded portal up to date.

    python -m portal.ops.launch.prepare [--node FOLDER --address URL] [--first-job new|always]

It is one process, since starting Django takes a second. Progress goes to stderr; the result is
one line of JSON on stdout, read by the launcher.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command

from portal.clock import database_now


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", type=Path, help="folder of this machine's agent, which is to join")
    parser.add_argument("--address", default="", help="where that agent finds the portal")
    parser.add_argument("--first-job", default="new", choices=("new", "always"))
    options = parser.parse_args()
    os.environ.setdefault("STATEMENT_TIMEOUT_S", "0")  # as for manage.py
    django.setup()
    roots = agent_model_roots()
    step("Database", lambda: call("migrate", verbosity=0))
    step("Static files", lambda: call("collectstatic", interactive=False, verbosity=0))
    step("Shipped history", lambda: call("load_shipped_history"))
    step("Predictor", have_a_predictor)
    result = {
        "people": json.loads(call("bootstrap_users", json=True)),
        "join_token": join_token(options.node, options.address) if options.node else "",
        "model_roots": roots,
        "api_token": first_job_token(always=options.first_job == "always"),
    }
    print(json.dumps(result))


def agent_model_roots() -> list[str]:
    """Return the folders that this machine's agent takes base models from.

    Exits with the error if one of them is wrong.
    """
    from portal.ops.checks import model_roots

    for wrong in model_roots():
        sys.exit(f"{wrong.msg} {wrong.hint}")
    return [str(root) for root in settings.MODEL_ROOTS]


def step(name: str, work: Callable[[], Any]) -> None:
    began = time.monotonic()
    work()
    print(f"{name} ready in {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)


def call(command: str, **options: Any) -> str:
    """Run a management command; returns what it printed."""
    printed = io.StringIO()
    call_command(command, stdout=printed, **options)
    return printed.getvalue()


def have_a_predictor() -> None:
    """Train a predictor where there is none yet that this version can read."""
    from knowledge import selectors
    from knowledge.predictors import loaded_predictor

    found = selectors.active_predictor()
    if loaded_predictor.knowledge_of(found) is not None:
        return
    if found is not None:
        print("This version cannot read the predictor: it trains a new one …", file=sys.stderr, flush=True)
    call("train_predictor")


def join_token(node: Path, address: str) -> str:
    """Return a token with which this machine's agent joins.

    The text is empty if the machine is a node of this portal already. A node stays the same node
    when the portal's address changes.
    """
    known = node / "token.json"
    if is_node(known):
        saved = json.loads(known.read_text())
        if saved.get("portal") != address:
            known.write_text(json.dumps({**saved, "portal": address}))
        return ""
    known.unlink(missing_ok=True)  # of another database, or of a node that was removed
    return call("join_token").strip()


def is_node(known: Path) -> bool:
    """Does the agent's token file name a node that the portal has?"""
    from scheduler.selectors.nodes import all_nodes

    try:
        name = str(json.loads(known.read_text())["node"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return all_nodes().filter(pk=name).exists()


def first_job_token(*, always: bool) -> str:
    """Return a token for the first job in the name of `user`.

    The text is empty if no first job is due.
    """
    from portal.accounts.models import User
    from portal.accounts.services import create_token
    from scheduler.models import Job

    owner = User.objects.filter(username="user", is_active=True).first()
    if owner is None or (not always and Job.objects.exists()):
        return ""
    now = database_now()
    return create_token(owner=owner, name="first job", now=now, expires_at=now + timedelta(days=1))[1]


if __name__ == "__main__":
    main()
