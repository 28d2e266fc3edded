"""The catalogue's models by the pieces of their names: words, versions and sizes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache

from knowledge.core.domain.catalogue import Catalogue, Model

PIECE = re.compile(
    r"\d+x\d+(?:\.\d+)?[bm]?(?![a-z\d])|\d+(?:\.\d+)*(?:bn|[bmkt])?(?![a-z])|\d+(?:\.\d+)*|[a-z]+"
)
SAME_WORD = {"it": "instruct", "chat": "instruct"}
OPTIONAL = frozenset({"hf", "base", "pt", "meta", "v", "intermediate", "step", "1431k", "3t", "deduped"})
NEEDS_NUMBER = frozenset({"gpt", "opt", "moe"})  # ordinary or foreign words unless a number follows
OWN_WORDS = frozenset({"nemo", "zephyr"})  # name a family though they do not begin its names
CLOSE, SHORTEST = 0.85, 4
SIZE_TOLERANCE = 0.10
_DATE = re.compile(r"\d{4}")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(b|bn|m)")


@dataclass(frozen=True, slots=True)
class Variant:
    """A name of the catalogue.

    It has the value that a form takes, its pieces, and those that must be said.
    """

    value: str
    row: str
    parameters: int
    pieces: Counter[str]
    needed: Counter[str]
    owned: bool


@dataclass(frozen=True)
class ModelIndex:
    """All names of all models.

    `words` are the letters in them, `families` those that may begin a name.
    """

    variants: tuple[Variant, ...]
    words: frozenset[str]
    families: frozenset[str]
    ids: dict[str, str]
    owners: frozenset[str]

    def word(self, word: str, *, inside: bool = False) -> str | None:
        """The word of a name that this one is, or nearly is by its letters.

        `inside` a name it may be any of them, else only a family's.
        """
        word = SAME_WORD.get(word, word)
        if word in self.words:
            return word
        if len(word) < SHORTEST:
            return None
        return _closest(word, self.families) or (_closest(word, self._long) if inside else None)

    @cached_property
    def _long(self) -> tuple[str, ...]:
        return tuple(word for word in sorted(self.words) if len(word) > SHORTEST)

    def matching(self, pieces: Iterable[str]) -> list[Variant]:
        """The variants that have all of these pieces."""
        said = Counter(pieces)
        having = [self._having.get(piece, frozenset()) for piece in said]
        places = sorted(frozenset.intersection(*having)) if having else ()
        return [self.variants[i] for i in places if said <= self.variants[i].pieces]

    @cached_property
    def _having(self) -> dict[str, frozenset[int]]:
        """Where the variants with a piece are, by piece."""
        found: dict[str, set[int]] = {}
        for i, variant in enumerate(self.variants):
            for piece in variant.pieces:
                found.setdefault(piece, set()).add(i)
        return {piece: frozenset(places) for piece, places in found.items()}

    def of_size(self, parameters: float) -> list[Variant]:
        """The variants within 10 % of a number of parameters."""
        return [v for v in self.variants if abs(v.parameters - parameters) <= SIZE_TOLERANCE * parameters]


def _closest(word: str, known: Iterable[str]) -> str | None:
    matcher = SequenceMatcher(b=word)
    best, chosen = CLOSE, None
    for one in known:
        if abs(len(one) - len(word)) <= 2 and one[0] == word[0]:
            matcher.set_seq1(one)
            if (ratio := matcher.ratio()) >= best:
                best, chosen = ratio, one
    return chosen


def pieces_of(name: str) -> list[str]:
    """A name's words, versions and sizes, in small letters."""
    return [SAME_WORD.get(piece, piece) for piece in PIECE.findall(name.lower())]


def size_of(piece: str) -> float | None:
    """The parameters that a piece such as 8b stands for."""
    found = _SIZE.fullmatch(piece)
    return float(found[1]) * (1e6 if found[2] == "m" else 1e9) if found else None


@lru_cache(maxsize=4)
def model_index(catalogue: Catalogue) -> ModelIndex:
    """The index of a catalogue, made once for each."""
    variants = tuple(_variants(catalogue))
    words = frozenset(p for v in variants for p in v.pieces if p.isalpha()) | {"v"}
    families = frozenset(_family(v) for v in variants) - {"", "meta", "tiny", "random"} | OWN_WORDS & words
    ids = {v.value.lower(): v.value for v in variants if v.owned}
    owners = frozenset(v.value.lower().partition("/")[0] for v in variants if v.owned)
    return ModelIndex(variants, words, families, ids, owners)


def _family(variant: Variant) -> str:
    bare = variant.value.lower().rpartition("/")[2].removeprefix("meta-")
    first = PIECE.match(bare)
    return first[0] if first and first[0].isalpha() else ""


def _variants(catalogue: Catalogue) -> Iterable[Variant]:
    for name, model in (
        *_own_names(catalogue.models),
        *((m.model_name, m) for m in catalogue.added_models.values()),
    ):
        _, slash, bare = name.rpartition("/")
        pieces = Counter(pieces_of(bare))
        needed = Counter({p: n for p, n in pieces.items() if p not in OPTIONAL and not _DATE.fullmatch(p)})
        owned = bool(slash) or name == model.model_name
        yield Variant(
            name if owned else model.model_name, model.model_name, model.parameters, pieces, needed, owned
        )


def _own_names(models: Mapping[str, Model]) -> Sequence[tuple[str, Model]]:
    """Return keys and aliases as the table has them.

    The evened-out spellings that look-ups add are left out.
    """
    seen: set[str] = set()
    own = []
    for name, model in models.items():
        evened = re.sub(r"[ _-]+", "-", name.strip().lower())
        if evened not in seen or (name != evened and name.lower() != evened):
            own.append((name, model))
        seen.add(evened)
    return own


def meant_model(found: list[Variant], pieces: list[str], *, base: bool = False) -> str | None:
    """Return the one model that a name means.

    It is the variant of just these pieces, or the only row that has them.
    """
    said = set(pieces)
    exact = [v for v in found if set(v.needed) <= said]
    dated = any(_DATE.fullmatch(piece) and piece not in said for v in exact[:1] for piece in v.pieces)
    if exact and not (dated and len({v.row for v in found}) > 1):
        same = [v for v in exact if v.owned and set(v.pieces) == said] or [
            v for v in exact if set(v.pieces) == said
        ]
        return max(same or exact, key=lambda v: (len(said & set(v.pieces)), v.owned)).value
    if len({v.row for v in found}) != 1:
        return None
    if "instruct" not in said:
        rows = [v for v in found if v.value == v.row]
        plain = [v for v in found if "instruct" not in v.pieces]
        found = plain if base and plain else rows or plain or found
    owned = [v for v in found if v.owned] or found
    return min(owned, key=lambda v: sum(v.pieces.values())).value
