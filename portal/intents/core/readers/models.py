"""The base model.

It is told by a hub id as written, a name of the catalogue, or only a family or a size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from portal.intents.core.names.model_index import NEEDS_NUMBER, PIECE, ModelIndex, meant_model, size_of
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal
from trainer.recipes import RECIPES

FIELD = "model"
BUILTIN_TINY = "builtin/tiny-llama"
LONGEST = 12  # pieces of one name; longer chains are cut
SIZE = "size "  # before the size, in the note of a proposal that has no more
ADDRESS = re.compile(r"(?:https?|ftp|file|s3|gs|hf|ssh)://[^\s,;\"'<>]+|www\.[^\s,;\"'<>]+")
PATH = re.compile(r"(?<![\w.<])(?:/|~/|\.{1,2}/|[a-z]:\\)[\w.-]+(?:[/\\][\w.-]+)*/?")
HUB_ID = re.compile(
    r"(?<![\w./@-])(?P<owner>[a-z0-9][\w.-]{1,60})/(?P<name>[a-z0-9][\w.-]{1,95}[a-z0-9])(?![\w/])"
)
_BARE = re.compile(r"(?<![\w./@-])[a-z]+(?:-[a-z]+)+(?![\w/-]|\.\w|\s?\d[\d.]*b)")  # without its prefix
_SIZE = re.compile(
    r"(?<![\w.-])(?P<n>\d+(?:\.\d+)?)(?:\s?(?P<long>bn|billion|million)|(?P<b>b)|(?P<m>m)(?=[\s-]+(?:param|model|llm|one|base|or|version|variant)))(?![\w/])(?:[\s-]*param(?:eter)?s?)?"
)
_GAP = re.compile(r"[ _]|-|:(?! )|\.(?! )|[ _-]{2}|")
_UNIT = re.compile(
    r"[\s-]*(?:x\s*)?(?:epochs?|eps?\b|steps?|iterations?|gpus?|nodes?|cards?|hours?|hrs?|minutes?|mins?|days?|tokens?|euros?|eur|€|bits?\b|passes|x\b|a100|h100|h200|l40s?|l4\b|t4\b|v100|rtx|[a-z]\d+0s?\b|mi\d)"
)
_OTHER_SUFFIX = frozenset(
    [
        "lora",
        "qlora",
        "based",
        "style",
        "model",
        "finetune",
        "ft",
        *RECIPES,
        "like",
        "type",
        "family",
        "tuned",
        "sized",
        "class",
        "size",
        "run",
        "job",
        "test",
        "v",
    ]
)
_WANTS_INSTRUCT = re.compile(
    r"(?<![\w-])(?:instruct(?:[\s-]+(?:tuned|version|variant|model|one|flavou?r))*|instruction[\s-]tuned|chat[\s-]+(?:version|variant|model|flavou?r|one))(?![\w-])"
)


@dataclass(frozen=True, slots=True)
class NamePiece:
    """One piece of a name in the text; `glued` to the part before it without a blank."""

    start: int
    end: int
    piece: str
    glued: bool


def read(text: Sentence, index: ModelIndex, taken: list[tuple[int, int]]) -> Iterator[Proposal]:
    """Propose a model.

    `taken` are spans of file names, in which no model is looked for.
    """
    low = text.blanked(taken)
    yield from _refused(low)
    for found in (*ADDRESS.finditer(low), *PATH.finditer(low)):
        low = low[: found.start()] + " " * (found.end() - found.start()) + low[found.end() :]
    for found in HUB_ID.finditer(low):
        if value := _hub_id(text, found, index):
            yield Proposal(field=FIELD, start=found.start(), end=found.end(), value=value, weight=20)
    for found in _BARE.finditer(low):
        if value := index.ids.get(f"builtin/{found.group()}"):
            yield Proposal(field=FIELD, start=found.start(), end=found.end(), value=value, weight=10)
    for run in _runs(low, index):
        if proposal := _named(run, index):
            yield _or_builtin(proposal, low, index)
    for found in _SIZE.finditer(low):
        billions = float(found["n"]) * (1e-3 if found["m"] or found["long"] == "million" else 1)
        choices = tuple(index.of_size(billions * 1e9))
        yield Proposal(
            field=FIELD,
            start=found.start(),
            end=found.end(),
            choices=choices or ((),),
            note=f"{SIZE}{found['n']}b",
            weight=-1,
        )
    for found in _WANTS_INSTRUCT.finditer(low):
        yield Proposal(field="@instruct", start=found.start(), end=found.end(), value=True, weight=-2)


def _refused(low: str) -> Iterator[Proposal]:
    for pattern, complaint in (
        (ADDRESS, "is an address; give the hub id alone, such as meta-llama/Llama-3.1-8B"),
        (PATH, "is a path, and a sentence names none; choose a model of the list or give a hub id"),
    ):
        for found in pattern.finditer(low):
            tag = low[max(0, found.start() - 1) : found.start()] == "<"
            yield Proposal(
                field="" if tag else "@refused",
                start=found.start(),
                end=found.end(),
                complaint=complaint,
                weight=30,
            )


def _hub_id(text: Sentence, found: re.Match[str], index: ModelIndex) -> str | None:
    written = text.as_typed(*found.span())
    if known := index.ids.get(found.group()):
        return known
    owner, name = found["owner"], found["name"]
    if name.rpartition(".")[2] in ("jsonl", "json", "csv", "txt", "parquet", "md", "py"):
        return None
    like_a_model = re.search(r"\d", name) and re.search(r"[a-z]{2}", name)
    if re.search(r"[a-z]{2}", owner) and like_a_model and (owner in index.owners or "-" in name):
        return written
    return None


def _runs(low: str, index: ModelIndex) -> Iterator[list[NamePiece]]:
    """Find maximal chains of pieces that names of models have.

    Each has a family's word in it.
    """
    run: list[NamePiece] = []
    for found in PIECE.finditer(low):
        part = _part(low, found, run[-1] if run else None, index)
        apart = part is not None and run and not _GAP.fullmatch(low, run[-1].end, part.start)
        if part is None or apart or len(run) == LONGEST:
            yield from _kept(run, index)
            part = _part(low, found, None, index)
            run = []
        if part is not None:
            run = _joined([*run, part], index)
    yield from _kept(run, index)


def _kept(run: list[NamePiece], index: ModelIndex) -> Iterator[list[NamePiece]]:
    if any(part.piece in index.families for part in run):
        yield run


def _part(low: str, found: re.Match[str], before: NamePiece | None, index: ModelIndex) -> NamePiece | None:
    start, end = found.span()
    glued = before is not None and " " not in low[before.end : start]
    piece = found.group()
    if piece[0].isdigit():
        loose = not glued and size_of(piece) is None
        if loose and (_UNIT.match(low, end) or (before is None and not _GAP)):
            return None
        return NamePiece(start, end, piece.replace("bn", "b"), glued)
    if before is None and start and low[start - 1] in "@/\\":
        return None
    word = index.word(piece, inside=glued)
    if word is None and piece in ("b", "billion") and before and before.piece[0].isdigit():
        word = "b"
    if (
        word is None
        and glued
        and before
        and low[before.end : start] == "-"
        and len(piece) > 2
        and piece not in _OTHER_SUFFIX
    ):
        word = "?" + piece
    return NamePiece(start, end, word, glued) if word else None


def _joined(run: list[NamePiece], index: ModelIndex) -> list[NamePiece]:
    """Code llama is codellama, and 8 b is 8b."""
    if len(run) < 2:
        return run
    first, last = run[-2], run[-1]
    both = first.piece + last.piece
    if last.piece == "b" or (first.piece.isalpha() and last.piece.isalpha() and both in index.families):
        return [
            *run[:-2],
            NamePiece(first.start, last.end, both if last.piece != "b" else first.piece + "b", first.glued),
        ]
    return run


def _named(run: list[NamePiece], index: ModelIndex) -> Proposal | None:
    """Return the longest part of a chain that some model has.

    Also returns whether it settles which one.
    """
    best: tuple[int, int] | None = None
    for i in range(len(run)):
        for j in range(len(run), i, -1):
            pieces = [part.piece for part in run[i:j]]
            anchored = any(p in index.families for p in pieces)
            if anchored and (best is None or j - i > best[1] - best[0]) and index.matching(_said(pieces)):
                best = (i, j)
                break
    if best is None:
        return None
    i, j = best
    chosen, rest = run[i:j], run[j:]
    pieces = [part.piece for part in chosen]
    numbered = bool(rest) and rest[0].piece[0].isdigit() and rest[0].glued
    if len(pieces) == 1 and pieces[0] in NEEDS_NUMBER and not numbered:
        return None
    found = index.matching(_said(pieces))
    base = "base" in pieces
    contradicts = bool(rest) and _belongs(rest)
    end = (rest[-1] if contradicts else chosen[-1]).end
    found_at = Proposal(field=FIELD, start=chosen[0].start, end=end, choices=tuple(found), weight=4)
    if not contradicts and (meant := meant_model(found, _said(pieces), base=base)):
        return replace(found_at, value=meant)
    return replace(found_at, note="unknown" if contradicts else "")


def _or_builtin(proposal: Proposal, low: str, index: ModelIndex) -> Proposal:
    """Ask which is meant where two words may name a published model or a built-in one.

    "Tiny llama" is nearly builtin/tiny-llama, and TinyLlama in two words.
    """
    words = low[proposal.start : proposal.end].replace("_", " ").replace("-", " ").split()
    builtin = index.ids.get(BUILTIN_TINY)
    if proposal.value in (None, builtin) or builtin is None or len(words) != 2 or words[0] != "tiny":
        return proposal
    return replace(proposal, value=None, choices=(builtin, proposal.value))


def _said(pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if piece not in ("base", "v")]


def _belongs(rest: list[NamePiece]) -> bool:
    """Is what follows the name a part of it, such as another size or version?"""
    first = rest[0]
    version = first.piece == "v" and len(rest) > 1 and rest[1].piece[0].isdigit()
    return first.glued or version or size_of(first.piece) is not None
