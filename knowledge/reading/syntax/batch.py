"""Batch files of Windows, as lines of a shell.

Each line stays where it is, so that places hold. Nothing is run; what cannot be known, such as a loop's
variable or a part of a text, stays unknown as in a shell script.
"""

from __future__ import annotations

import re

KINDS = (".bat", ".cmd")
UNKNOWN = "$?"  # what a shell script cannot know either
_COMMAND = re.compile(r"\.(?:bat|cmd)\b|\^\s*\n|%\w+%|^\s*(?:set|call|cmd)\s", re.I)
_SKIPPED = re.compile(
    r"^(?:::|:|rem(?:\s|$)|echo\b|setlocal\b|endlocal\b|goto\b|pause\b|title\b|chcp\b|exit\b|shift\b|[()]\s*$"
    r"|call\s+:|cd\b|pushd\b|popd\b|mkdir\b|md\b|if\s+errorlevel\b)",
    re.I,
)
_LEADER = re.compile(
    r"^(?:@|\(|\)\s*else\s*\(?|else\b\s*\(?|call\s+|cmd(?:\.exe)?(?:\s+/\w)+\s+|start\s+(?:\"[^\"]*\"\s*)?(?:/\w+\s+)*"
    r"|for\s+(?:/\w\s+)?%%\w\s+in\s+\([^()]*\)\s+do\s*\(?"
    r"|if\s+(?:/i\s+)?(?:not\s+)?(?:exist\s+(?:\"[^\"]*\"|\S+)|defined\s+\w+|(?:\"[^\"]*\"|[^\s\"=]+)\s*==\s*(?:\"[^\"]*\"|[^\s\"]+))"
    r"\s*\(?)\s*",
    re.I,
)
_DEFAULT = re.compile(
    r"^@?if\s+(?:not\s+defined\s+(\w+)|[\"\[]?%(\w+)%[\"\]]?\s*==\s*(?:\"\"|\[\]))\s+\(?\s*set\s+\"?(\w+)=([^\"()]*)\"?\s*\)?$",
    re.I,
)
_SET = re.compile(r"^set\s+(?P<sum>/a\s+)?(?P<ask>/p\s+)?\"?(?P<name>[A-Za-z_]\w*)=(?P<value>.*)$", re.I)
_CUT = re.compile(r"\"[^\"]*\"|(?P<cut>(?<!>)&&?|\|\|?)")
_ELSE = re.compile(r"\)\s*else\b", re.I)
_VALUE = re.compile(
    r"%%~?\w*|%~dp0[\\/]?|%(?P<file>~\w*)(?=\d)(?P<at>\d)|%(?P<argument>\d)|%\*"
    r"|%(?P<name>\w+)(?P<part>:[^%\n]*)?%|!(?P<delayed>\w+)!"
)
_PY = re.compile(r"^py(?:\.exe)?(?:\s+-\d[\d.]*)?\s")
_EXE = re.compile(r"(?<=\w)\.exe(?=\s|\"|$)", re.I)


def command_in_shell(command: str) -> str:
    """A command as a shell's line, if it speaks the language of batch files."""
    return as_shell(command) if _COMMAND.search(command[:4_000]) else command


def in_shell(file: str, text: str) -> str:
    """A script as one of a shell, if its name is that of a batch file."""
    return as_shell(text) if file.lower().endswith(KINDS) else text


def as_shell(text: str) -> str:
    """The lines of a batch file as those of a shell script."""
    lines: list[str] = []
    opened = goes_on = False
    for line in text.splitlines():
        goes_before, goes_on = goes_on, line.rstrip().endswith("^")
        body = line.rstrip().removesuffix("^").strip() if goes_on else line.strip()
        if not goes_before:
            *done, (last, opened) = [_begun(part.strip()) for part in _parts(body)]
            body = "; ".join([f'{code}"' if text else code for code, text in done] + [last])
            body = f": ; {body}" if done else body  # else a text at its beginning would be the whole line
        else:
            body = _expanded(body, texts=opened)
        if opened and not goes_on:
            body, opened = f'{body}"', False
        lines.append(f"{body} \\" if goes_on else body)
    return "\n".join(lines)


def _parts(body: str) -> list[str]:
    """The commands of a line, which `&` and `|` divide outside quotes."""
    cuts = [found.span() for found in _CUT.finditer(body) if found["cut"]]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(body)]
    return [body[start:end] for start, end in zip(starts, ends, strict=True)]


def _begun(body: str) -> tuple[str, bool]:
    """The first line of a command, and whether it leaves a text open."""
    if found := _DEFAULT.match(body):
        variable = (found[1] or found[2]).upper()
        if variable == found[3].upper():
            return f"{variable}=${{{variable}:-{_expanded(found[4].strip(), texts=True)}}}", False
    inside = False
    while found := _LEADER.match(body):
        body, inside = body[found.end() :], inside or "(" in found[0].rstrip()[-1:]
    if inside:
        body = body.removesuffix(")").rstrip()
    if _SKIPPED.match(body):
        return "", False
    assigned = _SET.match(body)
    if assigned is None:
        return _expanded(_PY.sub("python ", body), texts=False), False
    name, value = assigned["name"].upper(), assigned["value"].strip()
    if assigned["ask"]:
        return f"read {name}", False
    if assigned["sum"]:
        return f"{name}=$(({_expanded(value.strip(chr(34)), texts=True)}))", False
    if _ELSE.search(value):  # which of both holds cannot be known
        value = "%ERRORLEVEL%"
    return f'{name}="{_expanded(value, texts=True)}', True


def _expanded(text: str, *, texts: bool) -> str:
    """A part of a command with the shell's names of variables.

    texts: it stands in a text, whose own quotes go.
    """
    text = _EXE.sub("", text.replace("\\", "/").replace("'", ""))
    text = _VALUE.sub(_value, text.replace("^", ""))
    return text.replace('"', "") if texts else text


def _value(found: re.Match[str]) -> str:
    name = found["name"] or found["delayed"]
    if (name and name.isdigit()) or found["part"]:
        return UNKNOWN
    if found[0] == "%*":
        return "$@"
    if name:
        return "." if name.upper() == "CD" else f"${{{name.upper()}}}"
    if argument := found["argument"] or found["at"]:
        return f"${{{argument}}}" if argument != "0" else UNKNOWN
    return "./" if found[0].startswith("%~dp0") else UNKNOWN
