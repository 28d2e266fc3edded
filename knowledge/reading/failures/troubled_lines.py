"""The lines of a log that tell of trouble.

They are errors, what these go on with, and words of the system. A line that merely quotes an error, such as a
row of the data, is none: an error stands at the beginning of its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

LONGEST = 600  # characters of a line that are looked at
FIRST, LAST = 200, 100  # of very many such lines; the first ones tell causes, the last ones ends
GOES_ON = 12  # lines that may belong to an error's message
_PREFIX = re.compile(
    r"^(?:\s*\[[^\[\]]{1,80}\]:?|\s*\d{1,6}:(?=\s)|\s*(?:rank|worker)\s?\d+:|\s*E\s{2,})+\s*", re.I
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
    r"^(?:terminate called|what\(\):|Killed\b|Segmentation fault|Bus error|Aborted|Fatal Python error"
    r"|slurmstepd: error|srun: error|NVRM:|CUDA error|RuntimeError|Out of memory|oom-kill|Memory cgroup"
    r"|exitcode\s*:|traceback\s*:\s*Signal|Watchdog caught|terminating|free\(\)|double free|malloc|corrupted"
    r"|CUDA SETUP: Problem|THCudaCheck FAIL|\*\*\* stack|NCCL watchdog|Permission denied"
    r"|Process finished with|kernel:|Signal \d|Process \d+ terminated|Root Cause|ERROR\b|FATAL\b"
    r"|error:|Error an?\b"
    r"|\S{1,160}(?: [\w.-]{1,30}){0,3}: (?:(?:fatal )?error: |Error while ))"
    r"|: command not found$|NCCL WARN|Assertion `[^`']{1,200}[`'] failed|exits? with return code = -?\d"
    r"|Failures?: |\bXid \(|torch[./]distributed[./]elastic\S*.{0,40}failed|oom_kill"
)
_NATIVE_FILE = re.compile(r"ProcessGroup\w+\.cpp")  # stands in what is left out before a message
_WARNING = re.compile(r"\bwarn(?:ing)?\b|Retrying in|\[Retry |FutureWarning|UserWarning", re.I)
_PROGRESS = re.compile(r"(?<![\d.:/])(\d{1,9})\s?/\s?(\d{1,9})(?![\d/:])")
_FRAME = re.compile(r'^\s*(?:File "|Traceback \(|During handling|The above exception|~*\^+|raise |return )')


class LogLine(NamedTuple):
    """A line with its number, from 1; 0 is what the node reported about the end."""

    number: int
    text: str


class TroubledLine(NamedTuple):
    """`error`: the name of the error that the line reports, empty in all others."""

    line: LogLine
    message: str
    error: str


def troubled(lines: Sequence[LogLine]) -> tuple[list[TroubledLine], list[TroubledLine]]:
    """Return those after the training's last advance, and those before it.

    An error after which the training went on was handled.
    """
    advanced = _last_advance(lines)
    found = list(_troubled(_without_consequences(lines)))
    late = [one for one in found if one.line.number >= advanced]
    return _some(late), _some(found[: len(found) - len(late)])


def _without_consequences(lines: Sequence[LogLine]) -> Sequence[LogLine]:
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
    """The line without ranks, moments and bars before it."""
    text = text[:LONGEST]
    stripped = _PREFIX.sub("", _AFTER_A_BAR.sub("", text) if "%|" in text else text)
    return _PREFIX.sub("", _STAMP.sub("", stripped)).strip().strip("│|").strip()


def error_name(message: str) -> str:
    match = _ERROR.match(message)
    return match["name"] if match else ""


def _troubled(lines: Iterable[LogLine]) -> Iterator[TroubledLine]:
    left, wraps = 0, False
    for line in lines:
        message = bare_message(line.text)
        if name := error_name(message):
            left = GOES_ON
            yield TroubledLine(line, message, name)
        elif _FRAME.match(line.text) or not message or _is_progress(message):
            left = left if not message else 0
        elif left or (wraps and _INDENTED.match(line.text)) or _is_native(line.text[:LONGEST], message):
            left = max(0, left - 1)
            yield TroubledLine(line, message, "")
        wraps = bool(_LEVEL.match(line.text) or (wraps and _INDENTED.match(line.text)))


def _is_native(text: str, message: str) -> bool:
    if message[0] in "{\"'" or _is_warning(message):
        return False
    return bool(_NATIVE.search(message) or _LEVEL.match(text) or _NATIVE_FILE.search(text))


def _is_warning(message: str) -> bool:
    return "NCCL WARN" not in message and bool(_WARNING.search(message))


def _is_progress(message: str) -> bool:
    return bool(_PROGRESS.search(message)) and ("%|" in message or message.startswith("step "))


def _last_advance(lines: Iterable[LogLine]) -> int:
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
