"""Examples of a page of docs as scripts: what a reader copies is what runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<language>\w+) (?P<client>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ACTIONS = ("Upload", "Recommend", "Submit", "Wait", "Read", "Download", "Cancel")


def script(page: str, client: str) -> str:
    """All blocks of a client, in the order of the page; their fences are "```LANGUAGE CLIENT"."""
    return "\n".join(
        block["text"] for block in FENCE.finditer((ROOT / page).read_text()) if block["client"] == client
    )


def actions(page: str) -> dict[str, set[str]]:
    """The clients that have a block, by the heading above it."""
    parts = re.split(r"^## (.+)$", (ROOT / page).read_text(), flags=re.MULTILINE)
    titled = zip(parts[1::2], parts[2::2], strict=True)
    return {title: {block["client"] for block in FENCE.finditer(text)} for title, text in titled}
