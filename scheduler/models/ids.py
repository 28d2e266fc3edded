"""Public ids: a prefix that names the kind, then time and chance, so that ids sort by age."""

from __future__ import annotations

import secrets
import time


def new_id(prefix: str) -> str:
    """E.g. `ftjob-0193c2a7e4b1` + 12 random hexadecimal digits; unique, and rising within one process."""
    return f"{prefix}{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}"


def new_job_id() -> str:
    return new_id("ftjob-")


def new_file_id() -> str:
    return new_id("file-")


def new_node_id() -> str:
    return new_id("node-")
