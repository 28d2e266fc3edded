"""The language of a text that was pasted, by the look of its lines."""

from __future__ import annotations

import re

_BATCH = re.compile(r"^\s*(?:@echo\b|rem\s|::|set\s+\"?\w+=|setlocal\b)|\^\s*$|%~dp0", re.I | re.M)
_SHELL = re.compile(
    r"^\s*(?:export\s+\w+=|#SBATCH\s|[A-Z_]+=\S*\s*$|\S*(?:python3?|torchrun|accelerate|deepspeed|srun|sbatch"
    r"|llamafactory-cli|axolotl|swift|tune|litgpt|xtuner)\s+\S)|\\\s*$",
    re.M,
)
_PYTHON = re.compile(r"^\s*(?:import\s+\w|from\s+[\w.]+\s+import\s|def\s+\w+\(|class\s+\w+)", re.M)
_TOML = re.compile(r"^\s*(?:\[[\w.\" -]+\]\s*$|[\w.-]+\s*=\s*\S)", re.M)
_ENTRY = re.compile(r"\s*(?:- |[\w.\"'/-]+\s*:(?:\s|$))")
MOSTLY = 0.6  # of the lines of YAML are entries; the rest is text of several lines


def name_by_text(text: str) -> str:
    """A name whose ending says how the text is read."""
    begins = text.lstrip()
    if begins.startswith("#!"):
        return "script.py" if "python" in begins.partition("\n")[0] else "script.sh"
    if begins.startswith("{"):
        return "script.ipynb" if '"cells"' in text and '"cell_type"' in text else "script.json"
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    entries = sum(1 for line in lines if _ENTRY.match(line))
    if lines and _ENTRY.match(lines[0]) and entries >= MOSTLY * len(lines):
        return "script.yaml"
    for kind, looks in (("py", _PYTHON), ("bat", _BATCH), ("sh", _SHELL), ("toml", _TOML)):
        if looks.search(text):
            return f"script.{kind}"
    return "script.yaml"
