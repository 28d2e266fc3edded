"""Reading pages: what stands where, as plain text."""

from __future__ import annotations

import re
from datetime import datetime
from html import unescape

TAG = re.compile(r"<[^>]*>")


def plain(html: str) -> str:
    return " ".join(unescape(TAG.sub(" ", html)).split())


def facts(html: str) -> dict[str, str]:
    """The terms of definition lists, and what they say."""
    pairs = re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", html, re.DOTALL)
    return {plain(term): plain(text) for term, text in pairs}


def tables(html: str, first_heading: str) -> list[list[list[str]]]:
    """The rows of each table whose head begins so."""
    found = []
    for head, body in re.findall(r"<thead.*?>(.*?)</thead>\s*<tbody>(.*?)</tbody>", html, re.DOTALL):
        if plain(head).startswith(first_heading):
            rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
            cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows)
            found.append([[plain(cell) for cell in row] for row in cells])
    assert found, f"no table begins with {first_heading}"
    return found


def table(html: str, first_heading: str) -> list[list[str]]:
    """The rows of the first of them."""
    return tables(html, first_heading)[0]


def moments(html: str) -> list[datetime]:
    """The times on a page as machines read them."""
    return [datetime.fromisoformat(text) for text in re.findall(r'<time[^>]* datetime="([^"]+)"', html)]


def state(html: str) -> str:
    """The first state that is shown."""
    found = re.search(r'class="badge state [^"]*">([^<]+)<', html)
    assert found
    return found.group(1)
