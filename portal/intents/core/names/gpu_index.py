"""The catalogue's GPUs by the word that people call them by, such as a100 or 4090."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from knowledge.core.domain.catalogue import Catalogue
from portal.intents.core.types import NodeKind

_MAKERS = frozenset(
    [
        "nvidia",
        "amd",
        "intel",
        "tesla",
        "geforce",
        "quadro",
        "rtx",
        "gtx",
        "titan",
        "instinct",
        "pro",
        "graphics",
    ]
)
_FINER = frozenset({"ti", "super", "d"})  # another product, unless it is said
CORE = re.compile(
    r"(?:(?<![\w.-])|(?<=\dx))(?:(?:nvidia|amd|intel|tesla|geforce|quadro|rtx|gtx|instinct|pro)[\s-]*)*(?P<core>[a-z]{0,5}\d{1,4}[a-z]{0,3})(?![\w.]\w|\w)"
)
_BEFORE = re.compile(r"(?:(?P<gb>\d+)\s?g(?:b|ib)?[\s-]+)$")
_AFTER = re.compile(
    r"[\s-]*(?:\(?(?P<gb>\d+)\s?g(?:b|ib)\)?|(?P<word>sxm\d?|pci-?e|nvlink|nvl|ti|super|ada|d|blackwell|max-q|server|active)(?:s)?)(?![\w])"
)
_CONSUMER = re.compile(r"[2-5]0[5-9]0")


@dataclass(frozen=True, slots=True)
class Named:
    """A GPU name in a text: its span, and the catalogue's models that it may mean."""

    start: int
    end: int
    models: tuple[str, ...]


@lru_cache(maxsize=4)
def _by_core(catalogue: Catalogue) -> dict[str, list[tuple[str, frozenset[str]]]]:
    table: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for gpu in catalogue.every_gpu:
        pieces = re.split(r"[\s-]+", gpu.gpu_model.lower())
        core = next((p for p in pieces if re.search(r"\d", p) and p not in _MAKERS), None)
        if core and gpu.gpu_model != "cpu":
            table.setdefault(core, []).append((gpu.gpu_model, frozenset(pieces)))
    return table


def gpu_names(low: str, catalogue: Catalogue, nodes: Sequence[NodeKind]) -> list[Named]:
    """All GPU names in a text; of several variants those that the nodes have."""
    table = _by_core(catalogue)
    found = []
    for match in CORE.finditer(low):
        core = match["core"]
        known = table.get(core) or (table.get(core[:-1]) if core.endswith("s") else None)
        if not known or not _meant(match, low):
            continue
        start, end, said = _words(low, match)
        models = [name for name, pieces in known if all(_fits(word, pieces) for word in said)]
        models = [name for name in models if not (_pieces(name) & _FINER) - set(said)] or models
        if models:
            found.append(Named(start, end, tuple(_narrowed(models, match.group(), catalogue, nodes))))
    return found


def _pieces(name: str) -> set[str]:
    return set(re.split(r"[\s-]+", name.lower()))


def _meant(match: re.Match[str], low: str) -> bool:
    """Tell whether a number means a GPU.

    A bare one does only if it looks like a consumer card's, or its maker's word stands before.
    """
    core = match["core"].rstrip("s")
    if not core.isdigit() or match.group() != match["core"]:
        return True
    after = low[match.end() :].lstrip(" -")
    if after.startswith("ada"):
        return True
    other = re.match(
        r"tokens?|steps?|iterations?|samples?|rows?|euros?|eur|context|hours?|epochs?|examples?|essays?|lines",
        after,
    )
    return bool(_CONSUMER.fullmatch(core)) and not other


def _words(low: str, match: re.Match[str]) -> tuple[int, int, list[str]]:
    start, end, said = match.start(), match.end(), []
    while after := _AFTER.match(low, end):
        if after["word"] == "d" and after.group() != "d" and not after.group().startswith("-"):
            break
        said.append(f"{after['gb']}gb" if after["gb"] else after["word"].replace("pci-e", "pcie"))
        end = after.end()
    if before := _BEFORE.search(low[:start]):
        said.append(f"{before['gb']}gb")
        start = before.start()
    if "rtx" in match.group() and "pro" in match.group().split():
        said.append("pro")
    return start, end, said


def _fits(word: str, pieces: frozenset[str]) -> bool:
    if word == "nvlink":
        word = "sxm"
    return word in pieces or (
        word.startswith("sxm") and any(p.startswith("sxm") for p in pieces if word in (p, "sxm"))
    )


def _narrowed(models: list[str], said: str, catalogue: Catalogue, nodes: Sequence[NodeKind]) -> list[str]:
    """Narrow the GPUs to those that nodes have.

    Else it is the one that the catalogue itself calls so; else all.
    """
    had = {catalogue.gpu_key(kind.gpu_model) for kind in nodes}
    here = [name for name in models if name in had]
    if here:
        return here
    own = catalogue.known_gpu(said.upper()) or catalogue.known_gpu(said.upper().rstrip("S"))
    return [own.gpu_model] if own and own.gpu_model in models else models
