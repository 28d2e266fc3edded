"""Public ids: a prefix that names the kind, then time and random digits.

The time makes ids sort by age.
"""

from __future__ import annotations

import re
import secrets
import time

JOB_ID = re.compile(r"\bftjob-[0-9a-f]{24}\b")
ARRAY_ID = re.compile(r"\bftarray-[0-9a-f]{24}\b")


def new_id(prefix: str) -> str:
    """Return a new unique id, rising within one process.

    It is e.g. `ftjob-0193c2a7e4b1` + 12 random hexadecimal digits.
    """
    return f"{prefix}{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}"


def is_id_like(text: str, example: str) -> bool:
    """Could the text be an id of the kind that `example` is of?

    There may be no such row.
    """
    return bool(re.fullmatch(re.escape(example[:-24]) + r"[0-9a-f]{24}", text))


def new_job_id() -> str:
    return new_id("ftjob-")


def new_array_id() -> str:
    return new_id("ftarray-")


def new_file_id() -> str:
    return new_id("file-")


def new_upload_id() -> str:
    return new_id("upload_")


def new_part_id() -> str:
    return new_id("part_")


def new_node_id() -> str:
    return new_id("node-")
