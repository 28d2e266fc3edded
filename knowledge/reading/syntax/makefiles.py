"""The shell lines of a rule in a Makefile."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.reading.syntax.shell import Word

MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_RULE = re.compile(r"^(?P<names>[\w./ -]{1,200}):(?!=)")
_SILENT = re.compile(r"^\t[@-]*")


def recipe(text: str, called: Sequence[Word]) -> str:
    """Return the lines of the rule that is called, else of the first.

    Each stands where it does in the file.
    """
    rule = called[0].text if called else ""
    kept: list[str] = []
    inside = goes_on = False
    for line in text.splitlines():
        if (found := _RULE.match(line)) and not goes_on:
            names = found["names"].split()
            inside = (rule in names) if rule else not any(kept)
            kept.append("")
        else:
            kept.append(_SILENT.sub("", line) if inside and (goes_on or line.startswith("\t")) else "")
        goes_on = line.endswith("\\")
    return "\n".join(kept)
