"""System checks.

Settings that would fail later and far away are explained at the start.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from trainer.roots import overlap

# sun_path holds 108 bytes on Linux and 104 on macOS.
MAX_SOCKET_PATH = 100
MAX_CURRENCY = 12
CURRENCY = re.compile(r"\S+( \S+)*")
BROKER_SCHEMES = ("redis", "rediss", "redis+socket", "filesystem", "memory", "sentinel")


@register
def data_dir(**_: Any) -> list[CheckMessage]:
    """The data folder, or the nearest folder above it that exists, must be writable."""
    folder = Path(settings.DATA_DIR)
    existing = next(part for part in (folder, *folder.parents) if part.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return []
    hint = "Set DATA_DIR to a folder that the portal's user may write to."
    return [Error(f"DATA_DIR {folder} cannot be written.", hint=hint, id="portal.E001")]


@register
def broker(**_: Any) -> list[CheckMessage]:
    """Check that Celery can use the broker's address.

    A socket's path must be short enough.
    """
    url = urlsplit(settings.CELERY_BROKER_URL)
    if url.scheme not in BROKER_SCHEMES:
        hint = "Use redis://HOST:PORT/0, or leave REDIS_URL empty for the embedded broker."
        return [Error(f"REDIS_URL has the scheme {url.scheme!r}.", hint=hint, id="portal.E002")]
    if url.scheme in ("redis", "rediss") and not url.hostname:
        hint = "Write it as redis://HOST:PORT/0."
        return [Error("REDIS_URL names no host.", hint=hint, id="portal.E003")]
    if url.scheme == "redis+socket" and len(url.path.encode()) > MAX_SOCKET_PATH:
        hint = "Set DATA_DIR to a shorter path, or REDIS_URL to a broker of your own."
        message = f"The broker's socket path has {len(url.path.encode())} bytes; the system takes 100."
        return [Error(message, hint=hint, id="portal.E004")]
    return []


@register
def nodes_of_a_job(**_: Any) -> list[CheckMessage]:
    """A job needs a node."""
    if settings.MAX_NODES_PER_JOB >= 1:
        return []
    hint = "Set it to 1, or to the number of nodes over which one job may be spread."
    return [Error(f"MAX_NODES_PER_JOB is {settings.MAX_NODES_PER_JOB}.", hint=hint, id="portal.E005")]


@register
def policy(**_: Any) -> list[CheckMessage]:
    """Check that the policy before any choice is one that may run live.

    With another one no job would ever start.
    """
    if settings.POLICY == "easy":
        return []
    from scheduler.core.policies import LIVE  # numpy, for those alone who ask for another one

    if settings.POLICY in LIVE:
        return []
    hint = f"Set it to one of {', '.join(LIVE)}."
    return [Error(f"POLICY is {settings.POLICY!r}, which cannot run live.", hint=hint, id="portal.E006")]


@register
def model_roots(**_: Any) -> list[CheckMessage]:
    """Check the folders of MODEL_ROOTS.

    Everyone may name anything below a root as a base model, so nothing of the portal's own may lie
    there.
    """
    found: list[CheckMessage] = []
    for root in settings.MODEL_ROOTS:
        if not root.is_absolute():
            hint = "Write folders as absolute paths, with commas between them."
            found.append(Error(f"MODEL_ROOTS names {str(root)!r}.", hint=hint, id="portal.E007"))
        elif overlap(root, Path(settings.DATA_DIR)):
            hint = (
                "Name folders that hold base models alone, apart from DATA_DIR with its artifacts and files."
            )
            found.append(
                Error(
                    f"MODEL_ROOTS names {root}, DATA_DIR is {settings.DATA_DIR}.", hint=hint, id="portal.E008"
                )
            )
    return found


@register
def currency(**_: Any) -> list[CheckMessage]:
    """Check that the currency is short and no part of a number.

    It stands behind every amount. It is made of letters and signs of currencies, with single spaces between
    words.
    """
    name = settings.CURRENCY
    spelt = all(char == " " or unicodedata.category(char)[0] == "L" or unicodedata.category(char) == "Sc"
                for char in name)  # fmt: skip
    if not name or (len(name) <= MAX_CURRENCY and spelt and CURRENCY.fullmatch(name)):
        return []
    hint = (
        "Set it to a code of ISO 4217 such as EUR, or to a sign or word of letters of up to"
        f" {MAX_CURRENCY} characters, such as € or credits; leave it empty for none."
    )
    return [Error(f"CURRENCY is {name[:40]!r}.", hint=hint, id="portal.E009")]


@register(deploy=True)
def production(**_: Any) -> list[CheckMessage]:
    """Settings that suit one machine but not production (`manage.py check --deploy`)."""
    found: list[CheckMessage] = []
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        hint = "Set DATABASE_URL to a PostgreSQL database when several hosts or many people use the portal."
        found.append(Warning("The database is SQLite.", hint=hint, id="portal.W001"))
    if not os.environ.get("SECRET_KEY"):  # the one check of where a setting came from
        hint = "Set SECRET_KEY to a long random text that all web and worker hosts share."
        found.append(Warning("SECRET_KEY was made up for this machine.", hint=hint, id="portal.W002"))
    return found
