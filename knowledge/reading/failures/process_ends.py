"""Ends of processes that a log tells by a number or a signal's name.

Each launcher has its own words for them, but the numbers are the system's: a negative code and one above 128
are a signal's, and very large or very small ones are those of Windows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

KILLED, CRASH, TIME_LIMIT = "killed", "crash", "time-limit"
_TERM = 15  # what launchers send to the others when one has ended
_BY_SIGNAL = {
    **dict.fromkeys((1, 2, 3, 9, _TERM), KILLED),
    **dict.fromkeys((4, 5, 6, 7, 8, 11, 31), CRASH),
    24: TIME_LIMIT,
}
_NAMES = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "SEGV": 11,
    "TERM": _TERM, "XCPU": 24, "SYS": 31,
}  # fmt: skip
_OF_SHELLS = 128  # what they add to a signal's number
_MOST_SIGNALS = 64
_OF_WINDOWS = 0xC0000000  # its codes for errors begin here
_INTERRUPTED = 0xC000013A
_CODE = re.compile(
    r"(?:\b(?:exit(?:ed|s|ing)?|crash(?:ed|es)|return(?:ed|s)?|terminated|died|finished|failed|ended)\b"
    r"[^:=]{0,40}?\b(?:code|status)|\bexit_?code|\breturn_?code|\bexited with)[\s=:(']{0,4}(-?\d{1,10})\b",
    re.I,
)
_SIGNAL = re.compile(rf"\bsignal[\s=:(]{{0,3}}(\d{{1,2}})\b|\bSIG({'|'.join(_NAMES)})\b")
_MAY_TELL = re.compile(r"code|status|exited with|signal|SIG", re.I)  # quicker than the others
# A launcher says so of itself.
_SENT = re.compile(r"\b(?:closing|sending) (?:the )?(?:process|signal|SIG)", re.I)


def cause_of_ends(messages: Iterable[str]) -> tuple[str, int] | None:
    """Return the cause that an end tells, and which message tells it.

    The signal that launchers send themselves counts only if there is no other end.
    """
    found = [(signal, at) for at, message in enumerate(messages) for signal in _signals(message)]
    first = next((one for one in found if one[0] != _TERM), found[0] if found else None)
    return (_BY_SIGNAL[first[0]], first[1]) if first else None


def tells_an_end(message: str) -> bool:
    return any(True for _ in _signals(message))


def _signals(message: str) -> Iterator[int]:
    if not _MAY_TELL.search(message) or _SENT.search(message):
        return
    for match in _CODE.finditer(message):
        yield from _signal_of(int(match[1]))
    for match in _SIGNAL.finditer(message):
        number = int(match[1]) if match[1] else _NAMES[match[2]]
        if number in _BY_SIGNAL:
            yield number


def _signal_of(code: int) -> Iterator[int]:
    """The signal of a code; Windows has none, so a crash is told as one."""
    if code < -_MOST_SIGNALS or code >= _OF_WINDOWS:
        yield _NAMES["INT"] if code % 2**32 == _INTERRUPTED else _NAMES["SEGV"]
    signal = -code if code < 0 else code - _OF_SHELLS
    if signal in _BY_SIGNAL:
        yield signal
