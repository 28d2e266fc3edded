"""The lines of a log that tell of trouble.

They are errors, what these go on with, and words of the system. A line that merely quotes an error, such as a
row of the data, is none: an error stands at the beginning of its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from knowledge.reading.failures.own_reasons import is_own_reason
from knowledge.reading.failures.process_ends import tells_an_end
from knowledge.reading.failures.system_words import in_english

LONGEST = 600  # characters of a line that are looked at
ENDING = 60  # characters at the end of a longer one: a launcher quotes its command before it tells the end
MOST_FRAMES = 200  # of one traceback
FIRST, LAST = 200, 100  # of very many such lines; the first ones tell causes, the last ones ends
GOES_ON = 12  # lines that may belong to an error's message
_PREFIX = re.compile(
    r"^(?:\s*>(?=\s)|\s*\(\w{1,40} pid=\d+[^()]{0,60}\)|\s*\[[^\[\]]{1,80}\]:?|\s*\d{1,6}:(?=\s)"
    r"|\s*(?:rank|worker)\s?\d+:|\s*E\s{2,})+\s*",
    re.I,
)
_STAMP = re.compile(
    r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s*(?:[-|]?\s*(?:ERROR|CRITICAL|FATAL)\s*[-|:]\s*)?"
)
_LEVEL = re.compile(r"^\W{0,2}(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d\S*\W{0,4}(?:ERROR|CRITICAL|FATAL)\b")
_INDENTED = re.compile(r"^ {8,80}\S")  # a long message that a terminal wrapped
_AFTER_A_BAR = re.compile(
    r"^.*(?:\d/\d{1,9} \[[\d:]{4,9}<[^\[\]]{1,400}\]\s*(?=\S)|%\|.*?(?=\[rank\d+\]:|\[E Process))"
)
_FAILURES, _ROOT_CAUSE = re.compile(r"^Failures?:"), re.compile(r"^Root Cause \(first")
_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*(?:Error|Exception|Invalid|Interrupt|Exit|NotFound|Failure"
    r"|Enabled|Exists|Refused|Timeout|Mismatch|Exceeded|Unavailable|Denied)|Exception|Stopped)(?:$|:|\s*\[)"
)
_NATIVE = re.compile(
    r"^(?:terminate called|libc\+\+abi: |what\(\):|Killed\b|Segmentation fault|Bus error|Aborted"
    r"|Fatal Python error"
    r"|slurmstepd: error|srun: error|NVRM:|CUDA error|RuntimeError|Out of memory|oom-kill|Memory cgroup"
    r"|exitcode\s*:|traceback\s*:\s*Signal|Watchdog caught|terminating|free\(\)|double free|malloc|corrupted"
    r"|CUDA SETUP: (?:Problem|Required library|CUDA detection)|THCudaCheck FAIL|\*\*\* stack"
    r"|NCCL watchdog|Permission denied"
    r"|Process finished with|kernel:|Signal \d|Process \d+ terminated|Root Cause|ERROR\b|FATAL\b"
    r"|(?:\w{1,20} )?fatal\s*:"
    r"|error:|Error an?\b"
    r"|\S{1,160}(?: [\w.-]{1,30}){0,3}: (?:(?:fatal )?error: |Error while ))"
    r"|\S{1,200}: (?:line \d+|\S{1,3} \d+): \S{1,300}: Permission denied"
    r"|: command not found$|: line \d+: +\d+ (?:Killed|Terminated|Aborted|Segmentation|Bus error)"
    r"|^Terminated$|NCCL WARN|Assertion `[^`']{1,200}[`'] failed"
    r"|\.cuh?:\d+: .{0,300}Assertion .{1,200} failed"
    r"|Failures?: |\bXid \(|\.so[.\d]*: undefined symbol|^[A-Z]\w{3,40} error: "
    r"|torch[./]distributed[./]elastic\S*.{0,40}failed|oom_kill"
)
# Left out before a message of C++.
_NATIVE_FILE = re.compile(
    r"ProcessGroup\w+\.cpp|^\W{0,3}(?:\[rank\d+\]:)?\[[EF][ \d].{0,60}\.(?:cpp|cc|cuh?|h|ts):\d"
)
_OPTION = re.compile(r"^--[\w-]{2,40}[ =].{1,300}\b(?:is missing|is not|does not exist|not found|must be)\b")
_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z](?=\w*[a-z])\w{3,60})(?:$|: )")
_CODE = re.compile(r"^(?:\[rank\d+\]:|\s*>)?\s{2,}\S")  # of a frame
_COLOUR = re.compile(r"(?:\x1b|ESC)\[[\d;]{0,12}[A-Za-z]")
# A message that a program wrote into a line that was not ended.
_GLUED = re.compile(
    r"^.{1,600}?[\d\]|%](?=Traceback \(most|terminate called|Segmentation fault|Bus error|slurmstepd: error"
    r"|Fatal Python error|Killed$)"
)
_WARNED_OF_AN_END = re.compile(r"NCCL WARN|\bworker died\b")
_WARNING = re.compile(r"\bwarn(?:ing)?\b|Retrying in|\[Retry |FutureWarning|UserWarning", re.I)
_PROGRESS = re.compile(r"(?<![\d.:/])(\d{1,9})\s?/\s?(\d{1,9})(?![\d/:])")
_FRAME = re.compile(r'^\s*(?:File "|Traceback \(|During handling|The above exception|~*\^+|raise |return )')
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)")
_PLACE = re.compile(
    r"(?P<file>(?:[\w.-]{1,80}[/\\]){0,3}[\w.-]{1,80}\.py)\W.{0,200}?\bin (?P<function><?\w{1,80})"
)


class LogLine(NamedTuple):
    """A line with its number, from 1; 0 is what the node reported about the end."""

    number: int
    text: str


class TroubledLine(NamedTuple):
    """`error`: the name of the error that the line reports, empty in all others.

    places: where its traceback went through, as "folder/file.py function", outermost first.
    """

    line: LogLine
    message: str
    error: str
    places: Sequence[str] = ()


def troubled(lines: Sequence[LogLine]) -> tuple[list[TroubledLine], list[TroubledLine]]:
    """Return those after the training's last advance, and those before it.

    An error after which the training went on was handled.
    """
    advanced = last_advance(lines)
    found = list(_troubled(without_consequences(lines)))
    late = [one for one in found if one.line.number >= advanced]
    return _some(late), _some(found[: len(found) - len(late)])


def without_consequences(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Leave out ends beside the first one: torchrun brought them about itself."""
    kept: list[LogLine] = []
    begun = None
    for line in lines:
        if _FAILURES.match(line.text):
            begun = len(kept)
        elif begun is not None and _ROOT_CAUSE.match(line.text):
            del kept[begun:]
            begun = None
        kept.append(line)
    return kept


def _some(found: list[TroubledLine]) -> list[TroubledLine]:
    return found if len(found) <= FIRST + LAST else found[:FIRST] + found[-LAST:]


def bare_message(text: str) -> str:
    """The line without ranks, moments, colours and bars before it."""
    text = _looked_at(text)
    stripped = _PREFIX.sub("", _GLUED.sub("", _AFTER_A_BAR.sub("", text) if "%|" in text else text))
    return in_english(_PREFIX.sub("", _STAMP.sub("", stripped)).strip().strip("│|").strip())


def _looked_at(text: str) -> str:
    """Of a long line its two ends; of one with bars what begins with the last."""
    begins = max(0, text.rfind("%|") - ENDING) if len(text) > LONGEST else 0
    text, ending = text[begins : begins + LONGEST], text[begins + LONGEST :][-ENDING:]
    return _COLOUR.sub("", f"{text} {ending}" if ending else text)


def error_name(message: str) -> str:
    match = _ERROR.match(message)
    return match["name"] if match else ""


def _troubled(lines: Iterable[LogLine]) -> Iterator[TroubledLine]:
    left, wraps = 0, False
    trace = _Traceback()
    for line in lines:
        message = bare_message(line.text)
        if name := error_name(message) or trace.raised(message):
            left = GOES_ON
            yield TroubledLine(line, message, name, trace.ended())
        elif trace.goes_on(line.text, message) or not message or _is_progress(message):
            left = left if not message else 0
        elif left or (wraps and _INDENTED.match(line.text)) or _is_native(line.text[:LONGEST], message):
            left = max(0, left - 1)
            yield TroubledLine(line, message, "")
        wraps = bool(_LEVEL.match(line.text) or (wraps and _INDENTED.match(line.text)))


class _Traceback:
    """The frames of the traceback at hand."""

    def __init__(self) -> None:
        self._places: list[str] = []
        self._is_open = False

    def goes_on(self, text: str, message: str) -> bool:
        """Take a line up; return whether it is a frame by itself."""
        if _TRACEBACK.search(message):
            self._places.clear()
        is_code = ".py" in text and len(self._places) < MOST_FRAMES
        if is_code and (place := _PLACE.search(text[:LONGEST])):
            file = place["file"].replace("\\", "/")
            self._places.append(f"{file} {place['function']}")
        frame = bool(_FRAME.match(text) or _FRAME.match(message))
        self._is_open = frame or (self._is_open and bool(_CODE.match(text)))
        return frame

    def raised(self, message: str) -> str:
        """The name of an error that is not called one, where it follows frames."""
        match = _RAISED.match(message) if self._is_open else None
        return match["name"] if match else ""

    def ended(self) -> list[str]:
        places, self._places, self._is_open = self._places, [], False
        return places


def _is_native(text: str, message: str) -> bool:
    if message[0] in "{\"'" or is_warning(message):
        return False
    return bool(
        is_own_reason(message)
        or _NATIVE.search(message)
        or _LEVEL.match(text)
        or _NATIVE_FILE.search(text)
        or "can't open file '" in message
        or tells_an_end(message)
        or _OPTION.match(message)
    )


def is_warning(message: str) -> bool:
    return bool(_WARNING.search(message)) and not _WARNED_OF_AN_END.search(message)


def _is_progress(message: str) -> bool:
    return bool(_PROGRESS.search(message)) and ("%|" in message or message.startswith("step "))


def last_advance(lines: Iterable[LogLine]) -> int:
    """The number of the last line in which a count of steps or rows grew."""
    furthest: dict[str, int] = {}
    last = 0
    for line in lines:
        message = line.text[:LONGEST]
        if (match := _PROGRESS.search(message)) and _is_progress(message.strip()):
            count, total = int(match[1]), match[2]
            if count > furthest.get(total, -1):
                furthest[total], last = count, line.number
    return last
