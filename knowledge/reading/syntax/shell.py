"""Commands of a shell script or a line.

Variables are replaced by the values that the script assigns to them. Nothing is run. A value that cannot be
known (a loop's variable, an element of an array, another program's output) stays unknown, and a word that
holds it states nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from knowledge.reading.syntax.arithmetic import arithmetic
from knowledge.reading.types import COMMAND_FILE, Location

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
VARIABLE = re.compile(
    r"\$\{(?P<braced>[A-Za-z_]\w*|\d)(?:(?P<how>:?[-=+?])(?P<other>[^{}]*))?\}|\$(?P<bare>[A-Za-z_]\w*|\d)"
    r"|\$\(\((?P<sum>[^()]*(?:\([^()]*\)[^()]*)*)\)\)|(?P<unknown>\$\(|`|\$\{|\$[@*#?!])"
)
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
REDIRECT = re.compile(r"(?:>|\btee)\s*(['\"]?)([\w./$\{\}-]+)\1")
REDIRECTION = re.compile(r"\d?(?:>>?|<)(?P<to>[^<].*)?")
SBATCH = re.compile(r"#\s*(?:SBATCH|PBS|BSUB|\$)\s+(-.*)")
SEPARATORS = frozenset({";", "&&", "||", "|", "&", ";;"})
LEADERS = frozenset(
    {"eval", "then", "do", "else", "exec", "time", "nohup", "export", "local", "set", "readonly", "declare"}
)
WORD = re.compile(
    r"""(?:\d?>&\d|\$\(\((?:[^()]|\([^()]*\))*\)\)|\$\([^()]*\)|\$\{[^{}]*\}|`[^`]*`|\\.|"(?:\\.|[^"\\])*"|'[^']*'"""
    r"""|[^\s"'\\;&|])+|;;|&&|\|\||[;&|"']"""
)
TEXT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=([\"'])")
USED = re.compile(r"\"?\$\{?(\w+)\}?\"?")
OPTIONS = re.compile(r"(^|\s)--?[a-z]")
READ = re.compile(r"\s*read\s+.*?(\w+)\s*<<")
ALL = frozenset({"$@", "$*", "${@}", "${*}"})  # arguments, one word each
LONGEST = 20_000
MOST_GROWN = 200  # lines of a text that is put together
UNKNOWN = "\x00"


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command, with the place of what it says.

    The place where it is used is kept if that is another.
    """

    text: str
    place: Location
    also: tuple[Location, ...] = ()

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text


@dataclass(frozen=True, slots=True)
class Script:
    """The commands that a shell script runs.

    `options` are its scheduler's; `files` are those that it writes itself.
    """

    commands: tuple[tuple[Word, ...], ...]
    options: tuple[Word, ...] = ()
    files: dict[str, tuple[str, int]] = field(default_factory=dict)


def parse(text: str, file: str, arguments: Sequence[Word] = (), environment: Sequence[Word] = ()) -> Script:
    """Return the commands of a script called with these arguments.

    Its places are in `file`.
    """
    variables = {str(at): word for at, word in enumerate(arguments, 1)}
    for word in environment:
        name, _, value = word.text.partition("=")
        variables[name] = replace(word, text=value)
    shell = _Shell(file, variables)
    for number, line in _logical_lines(text, shell):
        shell.read(line, number)
    return Script(tuple(shell.commands), tuple(shell.options), shell.files)


def parse_line(command: str) -> Script:
    """The commands of one line: all places are the command's."""
    return parse(command, COMMAND_FILE)


class _Shell:
    def __init__(self, file: str, variables: dict[str, Word]) -> None:
        self.file, self.variables = file, variables
        self.arguments = [word for name, word in variables.items() if name.isdigit()]
        self.commands: list[tuple[Word, ...]] = []
        self.options: list[Word] = []
        self.files: dict[str, tuple[str, int]] = {}
        self.texts: dict[str, list[tuple[int, str]]] = {}  # variables that hold a command of several lines

    def place(self, line: int) -> Location:
        return Location(self.file, 1 if self.file == COMMAND_FILE else line)

    def read(self, parts: list[tuple[int, str]], number: int) -> None:
        """One logical line, given as its physical ones."""
        if found := SBATCH.match(parts[0][1].strip()):
            self.options += [Word(word, self.place(number)) for word in _split(found[1])]
            return
        if found := TEXT.match(parts[0][1]):
            body = [(parts[0][0], parts[0][1][found.end() :]), *parts[1:]]
            body[-1] = (body[-1][0], body[-1][1].rpartition(found[2])[0])
            if len(parts) > 1 or OPTIONS.search(body[0][1]):  # expanded where it is used
                self.texts[found[1]] = self._grown(found[1], body)
                return
        parts = [part for line, text in parts for part in self._with_texts(line, text)]
        words: list[Word] = []
        for line, text in parts:
            for raw in _split(text):
                if raw in SEPARATORS:
                    self._command(words)
                    words = []
                    continue
                words += self._expanded(raw, line)
        self._command(words)

    def _grown(self, name: str, body: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """The lines of a text, which may begin with what it was before."""
        line, first = body[0]
        used = USED.match(first.lstrip())
        if used is None or used[1] != name:
            return body
        known = self.variables.get(name)
        before = self.texts.get(name) or ([(known.place.line, known.text)] if known else [])
        rest = first.lstrip()[used.end() :]
        return [*before, (line, rest), *body[1:]] if len(before) <= MOST_GROWN else body

    def _with_texts(self, line: int, text: str) -> list[tuple[int, str]]:
        """A line with the lines of the variable that holds most of a command."""
        found = next((one for one in USED.finditer(text) if one[1] in self.texts), None)
        if found is None:
            return [(line, text)]
        before, behind = text[: found.start()], text[found.end() :]
        return [(line, before), *self.texts[found[1]], *self._with_texts(line, behind)]

    def _command(self, words: list[Word]) -> None:
        """Keep a command; assignments alone change variables."""
        words = _without_redirections(words)
        while words and words[0].text in LEADERS:
            words = words[1:]
        if words and words[0].text in {"for", "select", "read"} and len(words) > 1:
            self.variables[words[1].text] = Word(UNKNOWN, words[1].place)
            return
        if words and words[0].text == ":":
            return
        if words and all(ASSIGNMENT.fullmatch(word.text) for word in words):
            for word in words:
                name, _, value = word.text.partition("=")
                unknown = value.startswith("(") or not word.known
                self.variables[name] = Word(UNKNOWN if unknown else value, word.place, word.also)
        elif words:
            self.commands.append(tuple(words))

    def _expanded(self, raw: str, line: int) -> list[Word]:
        """A word with its variables replaced; without quotes it may become several."""
        sources: list[Word] = []
        bare, quoted = _unquoted(raw)
        here = self.place(line)
        if bare in ALL:
            return self.arguments
        if quoted == "'":
            return [Word(bare, here)]
        value = VARIABLE.sub(lambda found: self._value(found, sources, here), bare)[:LONGEST]
        whole = sources[0] if len(sources) == 1 else None
        place, also = (whole.place, (here, *whole.also)) if whole and whole.place != here else (here, ())
        if sources and not quoted and " " in value.strip() and not ASSIGNMENT.fullmatch(bare):
            return [Word(part, place, also) for part in _split(value)]
        return [Word(value, place, also)]

    def expanded(self, text: str, here: Location) -> str:
        """A text with its variables replaced."""
        return VARIABLE.sub(lambda found: self._value(found, [], here), text)

    def _value(self, found: re.Match[str], sources: list[Word], here: Location) -> str:
        name = found["braced"] or found["bare"]
        if found["unknown"]:
            return UNKNOWN
        if found["sum"] is not None:
            return self._sum(found["sum"], sources)
        known = self.variables.get(name)
        if found["how"] in {":-", "-", ":=", "="} and (known is None or not known.text):
            known = Word(VARIABLE.sub(lambda one: self._value(one, [], here), found["other"]), here)
            if "=" in found["how"]:
                self.variables[name] = known
        if known is None:
            return UNKNOWN
        sources.append(known)
        return known.text

    def _sum(self, text: str, sources: list[Word]) -> str:
        """The value of `$(( ... ))` over whole numbers."""

        def named(found: re.Match[str]) -> str:
            known = self.variables.get(found[1])
            if known is not None:
                sources.append(known)
            return known.text if known is not None and known.text.isdigit() else UNKNOWN

        value = arithmetic(re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", named, text))
        return UNKNOWN if value is None else str(value)


def _logical_lines(text: str, shell: _Shell) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Join lines with their continuations.

    The files that here-documents write are kept apart.
    """
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        start, parts = at + 1, [(at + 1, lines[at])]
        opened = TEXT.match(lines[at])
        if opened and opened[2] not in lines[at][opened.end() :]:
            at = _open_text(lines, at, opened[2], parts)
            yield start, parts
            continue
        while parts[-1][1].rstrip().endswith("\\") and at + 1 < len(lines):
            parts[-1] = (parts[-1][0], parts[-1][1].rstrip()[:-1])
            at += 1
            parts.append((at + 1, lines[at]))
        at += 1
        if found := HEREDOC.search(parts[-1][1]):
            at = _here_document(lines, at, found[2], parts[-1][1], shell)
            continue
        yield start, parts
    return


def _open_text(lines: list[str], at: int, quote: str, parts: list[tuple[int, str]]) -> int:
    """Gather the lines up to the one with the closing quote.

    Returns the line behind it.
    """
    while at + 1 < len(lines):
        at += 1
        parts[-1] = (parts[-1][0], parts[-1][1].rstrip().removesuffix("\\"))
        parts.append((at + 1, lines[at]))
        if quote in lines[at] and not lines[at].rstrip().endswith("\\"):
            break
    return at + 1


def _here_document(lines: list[str], at: int, end: str, opening: str, shell: _Shell) -> int:
    """Keep the file that is written, if one is named; returns the line behind it."""
    begin = at
    while at < len(lines) and lines[at].strip() != end:
        at += 1
    target = REDIRECT.search(opening)
    if held := READ.match(opening):
        shell.texts[held[1]] = [
            (line + 1, lines[line].rstrip().removesuffix("\\")) for line in range(begin, at)
        ]
    elif target:
        here = shell.place(begin + 1)
        body = "\n".join(lines[begin:at])
        known, name = shell.expanded(body, here), shell.expanded(target[2], here)
        if UNKNOWN not in name:
            shell.files[name] = (known.replace(UNKNOWN, "null"), begin)
    return at + 1


def _split(text: str) -> list[str]:
    """Words with their quotes, and separators; comments are left out."""
    found: list[str] = []
    for word in WORD.findall(text[:LONGEST]):
        if word.startswith("#"):
            break
        found.append(word)
    return found


def _without_redirections(words: list[Word]) -> list[Word]:
    """A command without `> log`, `2>&1` and their like."""
    kept: list[Word] = []
    skipped = False
    for word in words:
        redirected = REDIRECTION.fullmatch(word.text)
        if not redirected and not skipped:
            kept.append(word)
        skipped = bool(redirected and not redirected["to"])
    return kept


def _unquoted(raw: str) -> tuple[str, str]:
    """A word without its quotes, and the kind of quote around the whole of it."""
    if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'":
        return raw[1:-1], raw[0]
    name, equals, value = raw.partition("=")
    if equals and len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return f"{name}={value[1:-1]}", value[0] if value[0] == '"' else "'"
    return raw.replace('"', ""), ""
