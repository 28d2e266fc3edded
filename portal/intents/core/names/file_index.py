"""The names of a person's files, looked up as written and by their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from portal.intents.core.lexicon import GENERIC_IN_FILES

SHORTEST = 3
MOST = 50  # names with one word: so many determine nothing
_WORDS = re.compile(r"[^\W\d_]{3,}")


def stem(word: str) -> str:
    """Ticket and tickets are one word."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > SHORTEST else word


@dataclass(frozen=True)
class FileIndex:
    """Names, newest first; of two equal names the newer one is meant."""

    names: Sequence[str]

    @cached_property
    def by_name(self) -> dict[str, str]:
        """Names in small letters to names as they are."""
        return {name.lower(): name for name in reversed(self.names)}

    @cached_property
    def spaced(self) -> tuple[str, ...]:
        """Names in small letters that hold a blank."""
        return tuple(name for name in self.by_name if " " in name) if " " in self._joined else ()

    @cached_property
    def _joined(self) -> str:
        return "\n" + "\n".join(self.by_name) + "\n"

    @cached_property
    def _stems(self) -> dict[str, set[str]]:
        """Stems of all words in names, to the words."""
        found: dict[str, set[str]] = {}
        for word in set(_WORDS.findall(self._joined)):
            found.setdefault(stem(word), set()).add(word)
        return found

    def holding(self, word: str) -> set[str]:
        """The files in whose names the word occurs as a word, 50 at most."""
        if len(word) < SHORTEST or word in GENERIC_IN_FILES:
            return set()
        words = self._stems.get(stem(word))
        if not words:
            return set()
        return {self.by_name[name] for word in words for name in islice(self._with(word), MOST)}

    def _with(self, word: str) -> Iterator[str]:
        """The names with the word, in small letters."""
        text, at = self._joined, -1
        while (at := text.find(word, at + 1)) >= 0:
            end = at + len(word)
            if not (text[at - 1 : at].isalpha() or text[end : end + 1].isalpha()):
                stop = text.find("\n", end)
                yield text[text.rfind("\n", 0, at) + 1 : stop]
                at = stop

    def narrowed(self, files: Iterable[str], marks: Iterable[str]) -> set[str]:
        """The files whose names have one of the marks, such as v2 or 2025."""
        wanted = set(marks)
        return {name for name in files if wanted & set(re.findall(r"v?\d+|[^\W\d_]+", name.lower()))}
